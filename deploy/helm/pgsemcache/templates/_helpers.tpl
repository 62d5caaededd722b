{{- define "pgsemcache.labels" -}}
app.kubernetes.io/name: pgsemcache
app.kubernetes.io/instance: {{ .release.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* What every pod has: no rights, and nothing to write to but /tmp. Volumes come last, so that more can follow. */}}
{{- define "pgsemcache.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
{{- end }}

{{/* What every container has; mounts come last, so that more can follow. */}}
{{- define "pgsemcache.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - name: tmp
    mountPath: /tmp
{{- end }}

{{/* The settings, and the URL of the database for a role: owner, service or worker. */}}
{{- define "pgsemcache.environment" -}}
env:
  - name: SEMCACHE_DATABASE_URL
    valueFrom:
      secretKeyRef: {name: {{ .release.Values.secret }}, key: {{ .role }}}
  {{- range $name, $value := .release.Values.settings }}
  {{- if ne (toString $value) "" }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- end }}
{{- with .release.Values.settingsSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end }}
