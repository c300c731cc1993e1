"""Makes `first-minute.gif` of the pictures `frame-*.png` in a folder, and removes them."""

import sys
from pathlib import Path

from PIL import Image

WIDTH = 960
MILLISECONDS_PER_FRAME = 2200


def main() -> None:
    folder = Path(sys.argv[1])
    names = sorted(folder.glob("frame-*.png"))
    if len(names) < 2:
        sys.exit(f"{folder} has {len(names)} frames; the test that takes them did not run")
    frames = [small(Image.open(name).convert("RGB")) for name in names]
    first, *rest = [frame.quantize(128, dither=Image.Dither.NONE) for frame in frames]
    first.save(
        folder / "first-minute.gif",
        save_all=True,
        append_images=rest,
        duration=MILLISECONDS_PER_FRAME,
        loop=0,
        optimize=True,
    )
    for name in names:
        name.unlink()


def small(frame: Image.Image) -> Image.Image:
    return frame.resize((WIDTH, round(frame.height * WIDTH / frame.width)), Image.Resampling.LANCZOS)


main()
