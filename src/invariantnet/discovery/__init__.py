"""Discovery: symmetries that nobody named."""

from invariantnet.discovery.result import Discovery, Tested
from invariantnet.discovery.search import discover

__all__ = ["Discovery", "Tested", "discover"]
