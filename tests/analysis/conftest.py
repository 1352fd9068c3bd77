"""Makes the writer of synthetic campaigns importable here as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
