"""Programs that have no wheel and come from Debian; `make system-packages` installs them.

It needs the standard library only, so that CI can run it before anything is installed.
"""

import os
import shutil
import subprocess
import sys

# A program, and the packages that it and what the tests ask of it come from.
PACKAGES = {
    "gst-launch-1.0": (
        "gstreamer1.0-tools",
        "gstreamer1.0-plugins-base",
        "gstreamer1.0-plugins-good",
        "gstreamer1.0-plugins-bad",
        "gstreamer1.0-plugins-ugly",
    ),
    "gst-discoverer-1.0": ("gstreamer1.0-plugins-base-apps",),
    "bwrap": ("bubblewrap",),
    "redis-server": ("redis-server",),
    "slurmctld": ("slurm-wlm",),
    # libFuzzer and the sanitizers, of which the second package brings the libraries.
    "clang": ("clang", "libclang-rt-dev"),
    "llvm-profdata": ("llvm",),
    "cmake": ("cmake",),
    "afl-fuzz": ("afl++",),
    "g++": ("g++",),
    "gdb": ("gdb",),
    # Containers of an ordinary user, and a program for an image that needs no other file.
    "podman": ("podman",),
    "runc": ("runc",),
    "newuidmap": ("uidmap",),
    "catatonit": ("catatonit",),
    "busybox": ("busybox-static",),
    "curl": ("curl",),
    "pgbouncer": ("pgbouncer",),
    # A real Prometheus for the alert rules; promtool checks metrics and rules.
    "promtool": ("prometheus",),
    # Farms as `windlass init farm` describes them.
    "haproxy": ("haproxy",),
    "openssl": ("openssl",),
    "systemd-analyze": ("systemd",),
    "kubectl": ("kubernetes-client",),
}


def find_program(name: str) -> str | None:
    """Where a program is; daemons are also looked for where Debian keeps them."""
    places = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=f"{places}:/usr/local/sbin:/usr/sbin:/sbin")


def missing_packages() -> list[str]:
    """What is to be installed."""
    return [
        package
        for program, packages in PACKAGES.items()
        if find_program(program) is None
        for package in packages
    ]


def missing_reason(program: str) -> str | None:
    """Why tests of a program are skipped, in one line; None if it is there."""
    if find_program(program) is not None:
        return None
    return f"no {program} here: make system-packages installs it"


def main() -> int:
    """Install what is missing; needs apt-get, and root or sudo."""
    packages = missing_packages()
    if not packages:
        print("all system packages are there")
        return 0
    apt = shutil.which("apt-get")
    if apt is None:
        print(f"expected apt-get to install {' '.join(packages)}, found none", file=sys.stderr)
        return 1
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends"]):
        command = [*prefix, apt, *arguments, *(packages if "install" in arguments else [])]
        done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            print(f"{' '.join(command)} ended with {done.returncode}", file=sys.stderr)
            return 1
    print(f"installed {' '.join(packages)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
