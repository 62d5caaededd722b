from service.upstream.headers import answer_headers, request_headers


def test_a_connections_own_headers_stay_on_it() -> None:
    given = [
        (b"Connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"1"),
        (b"te", b"trailers"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"h2c"),
        (b"host", b"cache.local"),
        (b"content-length", b"3"),
        (b"expect", b"100-continue"),
        (b"traceparent", b"00-ab-cd-01"),
        (b"X-Session-Id", b"s"),
        (b"x-many", b"1"),
        (b"x-many", b"2"),
    ]
    assert request_headers(given, key=None) == [
        (b"traceparent", b"00-ab-cd-01"),
        (b"x-session-id", b"s"),
        (b"x-many", b"1"),
        (b"x-many", b"2"),
        (b"accept-encoding", b"identity"),
    ]


def test_answers_lose_what_is_the_connections_or_the_caches() -> None:
    given = [
        (b"Date", b"now"),
        (b"Server", b"uvicorn"),
        (b"Connection", b"close, x-hop"),
        (b"X-Hop", b"1"),
        (b"Keep-Alive", b"timeout=5"),
        (b"X-Cache", b"HIT"),
        (b"Age", b"7"),
        (b"Content-Length", b"3"),
        (b"Retry-After", b"7"),
        (b"Set-Cookie", b"a=1"),
    ]
    kept = [(b"content-length", b"3"), (b"retry-after", b"7"), (b"set-cookie", b"a=1")]
    assert answer_headers(given) == kept
    assert answer_headers([*given, (b"content-encoding", b"gzip")]) == kept[1:]
    for unread in ((b"content-encoding", b"identity"), (b"content-encoding", b"x-gzip")):
        assert answer_headers([*given, unread]) == [*kept, unread]


SECRETS = [
    "authorization",
    "Proxy-Authorization",
    "cookie",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "x-litellm-api-key",
    "x-litellm-key-secret",
    "ocp-apim-subscription-key",
    "helicone-auth",
    "x-portkey-api-key",
    "x-portkey-virtual-key",
    "x-portkey-config",
    "x-bf-vk",
    "x-auth-token",
    "x-amz-security-token",
    "x-forwarded-access-token",
    "cf-access-jwt-assertion",
    "cf-access-client-secret",
    "x-functions-key",
    "x_api_key",
    "apikey",
]
NO_SECRETS = [
    "idempotency-key",
    "openai-organization",
    "x-stainless-retry-count",
    "x-max-tokens",
    "x-data-parallel-rank",
    "x-session-id",
    "x-portkey-trace-id",
    "helicone-user-id",
    "x-routing-key",
    "x-author",
]


def test_a_callers_credentials_for_other_servers_stay_here() -> None:
    given = [(name.encode(), b"1") for name in SECRETS + NO_SECRETS]
    passed = [name.decode() for name, _ in request_headers(given, key=None)]
    assert passed == [*NO_SECRETS, "accept-encoding"]
