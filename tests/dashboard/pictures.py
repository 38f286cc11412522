"""Takes the pictures in docs/screenshots: every view in both themes. `make screenshots`."""

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from examples import demo_farm, demo_fuzzing
from tests.dashboard.farm import WIDE, Farm, running_browser, running_farm, settle, sign_in
from tests.dashboard.views import VIEWS

WORK_SECONDS = 75  # until the farm has figures over time to show


def places_of(farm: Farm) -> dict[str, Any]:
    """What stands for the braces in `VIEWS`."""
    job = farm.submit("sh", "-c", "echo hello", name="a job to look at")
    farm.wait(job)
    waiting = farm.submit("true", requires=["memory>=8TiB"], name="a job that waits")
    workflows = farm.http.get("/api/v1/workflows").json()["workflows"]
    large = max(workflows, key=lambda one: int(one["jobs"]))  # it shows most
    workers = farm.http.get("/api/v1/workers").json()["workers"]
    branches = ({"branch": name} for name in ("main", "next"))
    run, other = (farm.client.start_template("nightly", one) for one in branches)
    named = {"name": "a colourful log"}
    painted = farm.http.get("/api/v1/jobs", params=named).json()["jobs"][0]["id"]
    return {
        "job": job,
        "painted": painted,
        "waiting": waiting,
        "workflow": large["id"],
        "run": run.id,
        "other": other.id,
        "worker": workers[0]["name"],
        **_places_of_fuzzing(farm),
    }


def _places_of_fuzzing(farm: Farm) -> dict[str, str]:
    solver = farm.http.get("/api/v1/fuzz").json()["solvers"][0]["name"]
    status = farm.http.get(f"/api/v1/fuzz/{solver}").json()
    figures = farm.http.get(f"/api/v1/fuzz/{solver}/statistics").json()
    commits = [one["commit"] for one in figures["commits"]]
    reached = (farm.http.get(f"/api/v1/fuzz/{solver}/reached/{one}").json() for one in commits)
    told = (commit for commit, news in zip(commits, reached, strict=True) if news["targets"])
    return {
        "solver": solver,
        "finding": status["findings"][0]["key"],
        "fuzzed": next(told, commits[0]),
    }


def main(folder: Path) -> None:
    """Takes them all; small files, because they stay in the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (data / "fuzzing").mkdir()
        solver = demo_fuzzing.describe(data / "fuzzing")
        if demo_fuzzing.start_fuzzing(solver).wait() != 0:
            raise SystemExit(f"commit fuzzing of {solver} failed")
        farm = stack.enter_context(running_farm(data / "farm", "--fuzz", str(solver)))
        demo_farm.fill(farm.client)
        warm_up = farm.submit("sleep", str(WORK_SECONDS), name="warm up", priority=90)
        while farm.http.get(f"/api/v1/jobs/{warm_up}/wait").json()["finished_at"] is None:
            pass
        places = places_of(farm)
        with running_browser() as browser:
            for theme in ("light", "dark"):
                chosen: Any = theme
                context = browser.new_context(
                    viewport=WIDE, color_scheme=chosen, locale="en-US", reduced_motion="reduce"
                )
                page = context.new_page()
                sign_in(page, farm, farm.token)
                for name, path in VIEWS.items():
                    page.goto(farm.address + path.format(**places))
                    settle(page)
                    if name == "overview":
                        page.locator("canvas").first.wait_for()
                    taken = page.screenshot(type="jpeg", quality=70)
                    (folder / f"{name}-{theme}.jpg").write_bytes(taken)
                context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
