"""Nodes by GPUs as cells whose height and colour show a share, such as utilisation."""

from tui.widgets.gpu_matrix.renderer import Frame, MatrixRow
from tui.widgets.gpu_matrix.widget import GpuMatrix

__all__ = ["Frame", "GpuMatrix", "MatrixRow"]
