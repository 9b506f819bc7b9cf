"""The claims of the documents, by paper."""

from . import luo
from .judge import Claim, markdown

CLAIMS: dict[str, list[Claim]] = {"luo": luo.CLAIMS}

__all__ = ["CLAIMS", "markdown"]
