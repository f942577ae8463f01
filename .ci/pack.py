"""Packs the binary of one system: an archive, and where the system has them a package of Debian, an image of a container and a wheel.

python3 .ci/pack.py SYSTEM/ARCHITECTURE VERSION BINARIES OUT, where BINARIES/SYSTEM-ARCHITECTURE is the binary. All times are
SOURCE_DATE_EPOCH, names are sorted and owners are root, so that the same binary gives the same bytes.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import stat
import sys
import tarfile
import time
import zipfile

ROOT = pathlib.Path(__file__).parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
LEVEL = 6  # of compression: 9 takes three times as long for a hundredth less

SUMMARY = "Trains one language model on many machines without a server"
DEBIAN = {"linux/amd64": "amd64", "linux/arm64": "arm64"}
# Static binaries run with any C library. Go's runtime needs macOS 12.
PLATFORMS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
}
# The user of the image, as nobody has it elsewhere.
IMAGE_USER = 65532

# What `git describe` makes of a tag: v1.2.0, v1.2.0-rc.1, and after it the number of commits since then with the last one.
VERSION = re.compile(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?")


class Version:
    """A version as the tags name it, and as those write it who sort by it: each has 1.2.0-rc.1 before 1.2.0."""

    def __init__(self, named):
        found = VERSION.fullmatch(named)
        if not found:
            raise SystemExit(f"version {named}: a release is a tag such as v1.2.0, v1.2.0-alpha.1, v1.2.0-beta.1 or v1.2.0-rc.1")
        self.named, self.base, (self.stage, self.number, self.since) = named, found[1], found.group(2, 3, 4)
        self.build = [part for part in (found[5] and "g" + found[5], found[6] and "dirty") if part]

    def debian(self):
        """A tilde sorts before the end, a plus after it."""
        pre = f"~{self.stage}.{self.number}" if self.stage else ""
        return self.base + pre + "".join(mark + part for mark, part in zip("+...", ([self.since] if self.since else []) + self.build))

    def python(self):
        """PEP 440, of a normal form."""
        pre = {"alpha": "a", "beta": "b", "rc": "rc", None: ""}[self.stage] + (self.number or "")
        return self.base + pre + (f".post{self.since}" if self.since else "") + ("+" + ".".join(self.build) if self.build else "")


def tar(files, compress=True):
    """A tar of (name, bytes, mode, owner) in their order. A name that ends in a slash is a folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name, content, mode, owner in files:
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.mode, entry.mtime, entry.uid, entry.gid = mode, EPOCH, owner, owner
            entry.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), LEVEL, mtime=0) if compress else packed.getvalue()


def zipped(files):
    """A zip of (name, bytes, mode), as wheels and Windows take them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as out:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, content)
    return packed.getvalue()


def text(*path):
    return ROOT.joinpath(*path).read_bytes()


def archive(out, system, version, binary):
    """The binary beside its licence."""
    name = f"atoll-{version.named}-{system.replace('/', '-')}"
    program = "atoll.exe" if system.startswith("windows/") else "atoll"
    files = [(program, binary, 0o755), ("LICENSE", text("LICENSE"), 0o644), ("README.md", text("README.md"), 0o644)]
    if system.startswith("windows/"):
        (out / f"{name}.zip").write_bytes(zipped([(f"{name}/{n}", b, m) for n, b, m in files]))
    else:
        (out / f"{name}.tar.gz").write_bytes(tar([(f"{name}/", b"", 0o755, 0)] + [(f"{name}/{n}", b, m, 0) for n, b, m in files]))


def with_folders(files, private=()):
    """Every folder above each file, before it. Those that are private are for their owner alone."""
    seen, all_files = set(), []
    for name, content, mode, owner in files:
        for above in reversed(pathlib.PurePosixPath(name).parents):
            if str(above) not in seen:
                seen.add(str(above))
                all_files.append((f"./{above}/" if str(above) != "." else "./", b"", 0o700 if str(above) in private else 0o755, 0))
        all_files.append((f"./{name}", content, mode, owner))
    return all_files


def debian(out, system, version, binary):
    """A package of Debian: an ar of three members."""
    version, arch = version.debian(), DEBIAN[system]
    files = [
        ("etc/atoll/README", b"# NAME.conf in this folder says what atoll@NAME.service joins: see systemctl cat atoll@NAME\n", 0o644, 0),
        ("usr/bin/atoll", binary, 0o755, 0),
        ("usr/lib/systemd/system/atoll@.service", text(".ci", "debian", "atoll@.service"), 0o644, 0),
        ("usr/share/doc/atoll/README.md", text("README.md"), 0o644, 0),
        ("usr/share/doc/atoll/copyright", text("LICENSE"), 0o644, 0),
    ]
    control = (
        f"Package: atoll\nVersion: {version}\nArchitecture: {arch}\nMaintainer: The authors of atoll <atoll@localhost>\n"
        f"Installed-Size: {sum(len(f[1]) for f in files) >> 10}\nSection: science\nPriority: optional\nRecommends: ca-certificates, python3\n"
        f"Description: {SUMMARY}\n Each machine takes its own training steps and now and then publishes a small\n"
        " compressed delta of what it learned. All fold the same signed deltas into the\n same model, bit for bit.\n"
    )
    sums = "".join(f"{hashlib.md5(f[1]).hexdigest()}  {f[0]}\n" for f in files if not f[0].startswith("etc/"))
    about = [("control", control.encode(), 0o644), ("conffiles", b"/etc/atoll/README\n", 0o644), ("md5sums", sums.encode(), 0o644)]
    about += [(name, text(".ci", "debian", name), 0o755) for name in ("postinst", "postrm", "prerm")]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", tar([("./", b"", 0o755, 0)] + [(f"./{n}", b, m, 0) for n, b, m in about])),
        ("data.tar.gz", tar(with_folders(files, private=["etc/atoll"]))),
    ]
    package = b"!<arch>\n"
    for name, content in members:
        package += f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
    (out / f"atoll_{version}_{arch}.deb").write_bytes(package)


def image(out, system, version, binary):
    """An image of the binary alone, as a tar in the layout of OCI."""
    layer = [
        ("atoll", binary, 0o755, 0),
        ("data/", b"", 0o700, IMAGE_USER),
        ("etc/", b"", 0o755, 0),
        ("etc/passwd", f"atoll:x:{IMAGE_USER}:{IMAGE_USER}::/data:/atoll\n".encode(), 0o644, 0),
        ("tmp/", b"", 0o1777, 0),
    ]
    blobs = {}

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def blob_path(described):
        return "blobs/sha256/" + described["digest"].removeprefix("sha256:")

    def document(value):
        return json.dumps(value, indent=1, sort_keys=True).encode()

    plain, created = tar(layer, compress=False), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    labels = {"org.opencontainers.image.title": "atoll", "org.opencontainers.image.version": version.named, "org.opencontainers.image.licenses": "MIT",
              "org.opencontainers.image.description": SUMMARY}
    config = {
        "created": created, "os": "linux", "architecture": system.split("/")[1],
        "config": {
            "Entrypoint": ["/atoll"], "Cmd": ["help"], "User": f"{IMAGE_USER}:{IMAGE_USER}", "WorkingDir": "/data", "Volumes": {"/data": {}},
            "Env": ["HOME=/data"], "ExposedPorts": {"27182/tcp": {}, "27182/udp": {}}, "StopSignal": "SIGINT", "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "atoll"}],
    }
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", document(config)),
        "layers": [blob("layer.v1.tar+gzip", gzip.compress(plain, LEVEL, mtime=0))],
    }
    listed = blob("manifest.v1+json", document(manifest))
    listed["platform"] = {"os": "linux", "architecture": system.split("/")[1]}
    name = f"atoll:{version.named}"
    listed["annotations"] = {"io.containerd.image.name": f"docker.io/library/{name}", "org.opencontainers.image.ref.name": name}
    # Docker without containerd's store reads its own list instead of OCI's.
    docker = [{"Config": blob_path(manifest["config"]), "RepoTags": [name], "Layers": [blob_path(layer) for layer in manifest["layers"]]}]
    files = [("blobs/", b"", 0o755, 0), ("blobs/sha256/", b"", 0o755, 0)]
    files += [(f"blobs/sha256/{digest}", blobs[digest], 0o644, 0) for digest in sorted(blobs)]
    files.append(("index.json", document({"schemaVersion": 2, "manifests": [listed]}), 0o644, 0))
    files.append(("manifest.json", document(docker), 0o644, 0))
    files.append(("oci-layout", document({"imageLayoutVersion": "1.0.0"}), 0o644, 0))
    (out / f"atoll-{version.named}-image-{system.split('/')[1]}.tar").write_bytes(tar(files, compress=False))


def wheel(out, system, version, binary):
    """The Python package with the binary as a script, so that pip puts it on PATH."""
    version = version.python()
    tag, about = f"py3-none-{PLATFORMS[system]}", f"atoll-{version}.dist-info"
    package = ROOT / "optimizer/trainer/external/python"
    files = [(str(p.relative_to(package).as_posix()), p.read_bytes(), 0o644) for p in sorted(package.glob("atoll/**/*.py"))]
    files = [(n, f'"""The version of this package."""\n\n__version__ = "{version}"\n'.encode() if n == "atoll/version.py" else b, m) for n, b, m in files]
    program = "atoll.exe" if system.startswith("windows/") else "atoll"
    files.append((f"atoll-{version}.data/scripts/{program}", binary, 0o755))
    metadata = (
        f"Metadata-Version: 2.1\nName: atoll\nVersion: {version}\nSummary: {SUMMARY}\nLicense: MIT\nRequires-Python: >=3.9\n"
        "Provides-Extra: torch\nRequires-Dist: torch>=1.13; extra == 'torch'\nProvides-Extra: hf\nRequires-Dist: torch>=1.13; extra == 'hf'\n"
        "Requires-Dist: transformers; extra == 'hf'\nDescription-Content-Type: text/markdown\n\n"
    ).encode() + (package / "README.md").read_bytes()
    tags = "".join(f"Tag: py3-none-{p}\n" for p in PLATFORMS[system].split("."))
    files += [
        (f"{about}/LICENSE", text("LICENSE"), 0o644),
        (f"{about}/METADATA", metadata, 0o644),
        (f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: atoll\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
    ]

    def recorded(name, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    record = "".join(recorded(n, b) for n, b, _ in files) + f"{about}/RECORD,,\n"
    (out / f"atoll-{version}-{tag}.whl").write_bytes(zipped(files + [(f"{about}/RECORD", record.encode(), 0o644)]))


def main():
    system, version, binaries, out = sys.argv[1:]
    version = Version(version)
    binary, out = (pathlib.Path(binaries) / system.replace("/", "-")).read_bytes(), pathlib.Path(out)
    archive(out, system, version, binary)
    wheel(out, system, version, binary)
    if system.startswith("linux/"):
        debian(out, system, version, binary)
        image(out, system, version, binary)


if __name__ == "__main__":
    main()
