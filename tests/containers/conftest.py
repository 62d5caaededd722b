"""The image as the Dockerfile makes it.

All packages but ours are those of the present environment, unless SEMCACHE_TEST_IMAGE=whole asks for a build that
installs them anew, which takes some minutes.
"""

from __future__ import annotations

import os
import sysconfig

import pytest
from dockerless import Stage, build, require_overlays

INSTALLED = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PYTHONPATH": sysconfig.get_paths()["purelib"]}


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    require_overlays(tmp_path_factory.mktemp("overlay"))
    is_whole = os.environ.get("SEMCACHE_TEST_IMAGE") == "whole"
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return build(tmp_path_factory.mktemp("image"), **pip if is_whole else INSTALLED)
