"""The claims of the documents, by paper."""

from . import head, jugan, luo, plank, uyeda, zhou
from .judge import Claim, markdown, number

CLAIMS: dict[str, list[Claim]] = {"luo": luo.CLAIMS, "plank": plank.CLAIMS, "zhou": zhou.CLAIMS, "jugan": jugan.CLAIMS, "uyeda": uyeda.CLAIMS}

__all__ = ["CLAIMS", "head", "markdown", "number"]
