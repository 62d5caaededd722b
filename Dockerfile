# syntax=docker/dockerfile:1
# The service needs ONNX Runtime and an exported model; torch only exports it, in a stage that is left behind.
# tests/containers builds the stages without Docker.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS base
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

FROM base AS packages
# Extras of the image: `learn` is for the worker. `local` brings torch, to export other models than the bundled one.
ARG EXTRAS=learn,onnx,otel
# For the small build of torch: the package index for CPUs that PyTorch's installation page names.
ARG PIP_EXTRA_INDEX_URL
WORKDIR /build
COPY pyproject.toml constraints.txt README.md ./
COPY migrations migrations
COPY service service
COPY sql sql
COPY workers workers
RUN pip install --constraint constraints.txt hatchling \
    && pip wheel --no-build-isolation --no-deps --wheel-dir wheels . \
    && python -m venv /opt/pgsemcache \
    && /opt/pgsemcache/bin/pip install --constraint constraints.txt "$(echo wheels/*.whl)[${EXTRAS}]"

FROM packages AS model
RUN /opt/pgsemcache/bin/pip install --constraint constraints.txt "$(echo wheels/*.whl)[local]"
RUN /opt/pgsemcache/bin/python -m service.embed /opt/models \
    && chmod -R a+rX /opt/models

# `docker compose run --rm migration-tests`: the migrations on any Postgres, by SEMCACHE_TEST_DATABASE_URL.
FROM packages AS migration-tests
RUN /opt/pgsemcache/bin/pip install --constraint constraints.txt "$(echo wheels/*.whl)[test]"
COPY tests tests
ENV PATH=/opt/pgsemcache/bin:$PATH
USER 10001:10001
CMD ["pytest", "-p", "no:cacheprovider", "tests/migrations"]

FROM base AS service
COPY --from=packages /opt/pgsemcache /opt/pgsemcache
COPY --from=model /opt/models /opt/models
ENV PATH=/opt/pgsemcache/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SEMCACHE_HOST=0.0.0.0 \
    SEMCACHE_MODELS_DIR=/opt/models
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
ENTRYPOINT ["pgsemcache"]
CMD ["serve"]
