"""Arrow's functions of columns, made at its import, where no checker of types sees them."""

from typing import Any

import pyarrow.compute

compute: Any = pyarrow.compute
