"""What a policy asks for that the settings of the service do not name."""

from __future__ import annotations

from service.policy.cache_policy import CachePolicy
from service.settings import Settings


def unmet(policy: CachePolicy, settings: Settings) -> list[str]:
    """A sentence for each key that can have no effect, with the settings that would mend it."""
    judge = ("SEMCACHE_JUDGE_URL and SEMCACHE_JUDGE_MODEL", settings.judge_url)
    needs = (
        ("secondStage", "judge", policy.second_stage == "judge", *judge),
        ("judgeDoubts", "true", policy.judge_doubts, *judge),
        ("compare", "judge", policy.compare == "judge", *judge),
        (
            "secondStage",
            "cross_encoder",
            policy.second_stage == "cross_encoder",
            "SEMCACHE_CROSS_ENCODER",
            settings.cross_encoder,
        ),
        (
            "context",
            "rewritten",
            policy.context == "rewritten",
            "SEMCACHE_RESOLVER_URL and SEMCACHE_RESOLVER_MODEL",
            settings.resolver_url,
        ),
    )
    return [
        f"policy.{key}: {value} needs {setting}, which the service was started without"
        for key, value, asked, setting, given in needs
        if asked and not given
    ]


__all__ = ["unmet"]
