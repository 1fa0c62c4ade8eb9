"""A matrix of nodes × GPUs whose cells show a share, such as utilization, by height and color."""

from tui.widgets.gpu_matrix.renderer import Frame, MatrixRow
from tui.widgets.gpu_matrix.widget import GpuMatrix

__all__ = ["Frame", "GpuMatrix", "MatrixRow"]
