"""Animations of a run for slides: estimates spread over the network while the error curve grows."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.runtime import progress
from gosta.runtime.arrays import Integers
from gosta.runtime.extras import require, require_extra
from gosta.runtime.files import write_atomically
from gosta.simulation.trace_plots import (
    NetworkView,
    add_colour_bar,
    average_error,
    curve_title,
    draw_estimates,
    error_curve,
    plot_errors,
    reason_not_to_draw,
    sentence,
    time_of,
)
from gosta.views.plots import matplotlib, new_figure, set_scales

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Frame = NDArray[np.uint8]  # height × width × RGB

# Inches and pixels an inch: 1280 × 720 pixels.
SIZE = (12.8, 7.2)
DPI = 100
MAX_FRAMES = 80
FRAMES_PER_SECOND = 8
LAST_SECONDS = 3  # for which the last frame stays
MAX_TITLE = 85  # characters of a title's line
COLOURS = 256  # in a .gif file


def check_animation(name: str, file: Path) -> None:
    """Raise an error unless a file has the ending of an animation and can be written here."""
    if file.suffix.lower() not in (".gif", ".mp4"):
        raise InputError(f"{name} = {str(file)!r} must end in .gif or .mp4")
    require_extra(
        "plot", *["video"] * (file.suffix.lower() == ".mp4"), purpose=f"writing {file.name}"
    )


def animate(trace: Trace, file: Path) -> None:
    """Write an animation of a trace's first run."""
    check_animation("file", file)
    if reason := reason_not_to_draw(trace):
        raise InputError(f"cannot animate this trace: {reason}")
    write = _write_gif if file.suffix.lower() == ".gif" else _write_video
    write_atomically(file, write(_frames(trace)))


def frame_checkpoints(iterations: Integers, last: int, nodes: int) -> Integers:
    """Return the checkpoints that have a frame, in equal ratios of iterations.

    The first is the one at which a tenth of the nodes have taken part in an exchange, the last one
    is given.

    >>> frame_checkpoints(np.array([1, 2, 4, 8, 16]), 3, 40).tolist()
    [1, 2, 3]
    """
    first = min(last, int(np.searchsorted(iterations, nodes / 20)))
    times = np.geomspace(iterations[first], iterations[last], MAX_FRAMES)
    return np.unique(np.searchsorted(iterations[: last + 1], np.floor(times)))


class _Figure:
    """A network beside an error curve, drawn once.

    For each frame only what changes is drawn again.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.view, self.curve = trace, NetworkView(trace), error_curve(trace)
        figure = new_figure(*SIZE, dpi=DPI)
        figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)
        self.canvas = matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 2, width_ratios=[1.1, 1], height_ratios=[26, 1])
        self.network, self.axes = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])
        figure.suptitle(
            textwrap.fill(sentence(trace.setting), MAX_TITLE, break_on_hyphens=False), fontsize=18
        )
        self.dots = draw_estimates(self.network, self.view, self.view.deviations[self.view.last])
        self.network.set_title("after\noff", fontsize=15)
        add_colour_bar(figure.add_subplot(grid[1, 0]), self.dots, self.view)
        self._draw_curve()
        self.canvas.draw()  # finds a place for everything
        figure.set_layout_engine("none")
        self.changing = [self.dots, self.network.title, *self.axes.lines, *self.axes.collections]
        for artist in self.changing:
            artist.set_animated(True)
        self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(figure.bbox)

    def _draw_curve(self) -> None:
        plot_errors([self.trace], [self.trace.setting.protocol.label], ax=self.axes)
        self.axes.set_title(curve_title(self.trace.info.runs), fontsize=15)
        if self.axes.get_yscale() == "log":  # errors that are not all zero
            set_scales(self.axes, self.trace.is_relative, log_x=True)
        self.axes.set(xlim=self.axes.get_xlim(), ylim=self.axes.get_ylim())
        (self.point,) = self.axes.plot([], [], "o", markersize=12, color="black", clip_on=False)
        self.point.set_in_layout(False)

    def frame(self, checkpoint: int) -> Frame:
        """Draw the network at a checkpoint, and the curve up to there."""
        deviations = self.view.deviations[checkpoint]
        iteration = int(self.trace.iterations[checkpoint])
        self.dots.set_array(deviations)
        when = time_of(self.trace.setting, iteration)
        self.network.title.set_text(f"{when}:\n{average_error(self.view, deviations)}")
        self.point.set_data([self.curve.x[checkpoint]], [self.curve.mean[checkpoint]])
        self.canvas.restore_region(self.background)
        left, (low, high) = self.axes.get_xlim()[0], self.axes.get_ylim()
        drawn = (left, low), self.curve.x[checkpoint] - left, high - low
        clip = matplotlib("patches").Rectangle(*drawn, transform=self.axes.transData)
        for artist in self.changing:
            if artist.axes is self.axes and artist is not self.point:
                artist.set_clip_path(clip)
            artist.axes.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()


def _frames(trace: Trace) -> Iterator[Frame]:
    with require("matplotlib", "plot", "drawing plots").rc_context(
        {"font.size": 13}
    ):  # to be read from afar
        figure = _Figure(trace)
    chosen = frame_checkpoints(trace.iterations, figure.view.last, trace.setting.placement.nodes)
    with progress.bar("drawing frames", len(chosen)) as advance:
        for checkpoint in chosen.tolist():
            yield figure.frame(checkpoint)
            advance(1)


def _write_gif(frames: Iterator[Frame]) -> bytes:
    """Return a .gif file whose frames share the colours of the first and the last one."""
    image = require("PIL.Image", "plot", "writing a .gif file")
    pictures = [image.fromarray(frame) for frame in frames]
    both = image.fromarray(np.concatenate([np.asarray(pictures[0]), np.asarray(pictures[-1])]))
    palette = both.quantize(COLOURS, image.Quantize.FASTOCTREE)
    first, *others = [
        picture.quantize(palette=palette, dither=image.Dither.NONE) for picture in pictures
    ]
    milliseconds = [1000 // FRAMES_PER_SECOND] * len(others) + [1000 * LAST_SECONDS]
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0)
    return content.getvalue()


def _write_video(frames: Iterator[Frame]) -> bytes:
    """Return an .mp4 file in H.264 with the pixel format that players, browsers and slides show."""
    av, content = require("av", "video", "writing an .mp4 file"), io.BytesIO()
    with av.open(content, "w", format="mp4") as container:
        stream = container.add_stream(
            "libx264", rate=FRAMES_PER_SECOND, options={"crf": "20", "preset": "medium"}
        )
        stream.pix_fmt = "yuv420p"
        stream.width, stream.height = (round(DPI * inches) for inches in SIZE)
        for frame in _hold_last(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return content.getvalue()


def _hold_last(frames: Iterator[Frame]) -> Iterator[Frame]:
    """Yield the frames, and the last one again for as long as it stays."""
    for frame in frames:
        yield frame
    yield from [frame] * (LAST_SECONDS * FRAMES_PER_SECOND)
