"""Many simulations at once: studies of the user, and the experiments of the paper."""

from gosta.runtime.extras import require_extra

require_extra("sim", "running experiments")
