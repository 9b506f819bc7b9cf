"""The claims of the documents, by paper."""

from . import jugan, luo, uyeda, zhou
from .judge import Claim, markdown

CLAIMS: dict[str, list[Claim]] = {"luo": luo.CLAIMS, "zhou": zhou.CLAIMS, "jugan": jugan.CLAIMS, "uyeda": uyeda.CLAIMS}

__all__ = ["CLAIMS", "markdown"]
