"""`python -m workers`: the worker as a child of the service."""

import typer

from workers.cli import worker

typer.run(worker)
