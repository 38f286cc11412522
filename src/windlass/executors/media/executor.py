"""Runs `media` jobs with ffmpeg or GStreamer, whichever suits the work and is installed."""

from windlass.domain.tasks.kind import read_duration
from windlass.domain.tasks.media import (
    MediaArgs,
    as_ffmpeg,
    as_pipeline,
    choose_tool,
    has_pipeline,
    read_args,
)
from windlass.domain.tasks.sources import scheme_of
from windlass.executors.media.ffmpeg import find_ffmpeg, transcode
from windlass.executors.media.gstreamer import find_gstreamer, launch
from windlass.executors.media.probe import learn_duration, uri_probe
from windlass.executors.media.tool import STOPPED, place_source
from windlass.ports.executor import JobContext, Result


class MediaExecutor:
    """Implements `Executor`."""

    task = "media"

    async def run(self, context: JobContext) -> Result:
        """Converts as the job's arguments say."""
        args = read_args(context.args)
        tool = args.tool
        if tool == "auto":
            queue = str(context.spec.get("queue", "default"))
            present = find_gstreamer() is not None and has_pipeline(args)
            tool = choose_tool(queue, args.output, present)
        context.log(f"[windlass] converting with {tool}\n".encode())
        if tool == "ffmpeg":
            return await transcode(context, as_ffmpeg(args))
        uri = await _uri(context, args)
        declared = read_duration(args.duration, "args.duration")
        await learn_duration(context, declared, uri_probe(uri, find_ffmpeg()))
        if context.stopping.is_set():
            return STOPPED
        return await launch(context, as_pipeline(args, uri))

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


async def _uri(context: JobContext, args: MediaArgs) -> str:
    place = await place_source(context, args.input, 0)
    if scheme_of(place) is not None:
        return place
    return (context.scratch / place).absolute().as_uri()
