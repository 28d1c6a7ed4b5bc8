#!/usr/bin/python3 -ISE
"""lvm with one volume group, for tests where the kernel has no device mapper: volumes are sparse files behind loop devices.

FAKE_LVM_DIR has its state: group.json, and a file a volume. It takes the commands that keelson-csi-local runs, and refuses
every other one. lvm_contract_test.cc holds it, and the real lvm, to the same contract."""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys

EXTENT = 4 << 20
GROUP, POOL = "group", "pool"
STATE = pathlib.Path(os.environ["FAKE_LVM_DIR"])
FIELDS = {"lv_name", "lv_size", "lv_tags", "pool_lv", "lv_dm_path", "lv_active", "data_percent", "segtype", "metadata_percent", "zero",
          "vg_extent_size"}


def fail(text):
    print(f"  {text}", file=sys.stderr)
    sys.exit(5)


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def bytes_of(text):
    if not text.endswith("b"):
        fail(f"size {text} is not in bytes")
    return -(-int(text[:-1]) // EXTENT) * EXTENT


class Group:
    def __init__(self):
        STATE.mkdir(parents=True, exist_ok=True)
        self.devices = None
        self.lock = (STATE / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.file = STATE / "group.json"
        self.volumes = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.settings = json.loads((STATE / "settings.json").read_text()) if (STATE / "settings.json").exists() else {}

    def commit(self):
        new = STATE / "group.json.new"
        new.write_text(json.dumps(self.volumes))
        new.rename(self.file)

    def image(self, name):
        return STATE / f"{name}.lv"

    def taken(self, name):
        return self.image(name).stat().st_blocks * 512

    def device(self, name):
        """The loop device; empty: the volume is not active."""
        if self.devices is None:
            self.devices = {}
            for file in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
                with contextlib.suppress(OSError):
                    self.devices[file.read_text().rstrip("\n")] = f"/dev/{file.parts[3]}"
        return self.devices.get(str(self.image(name)), "")

    def activate(self, name):
        if not self.device(name):
            run("losetup", "--find", self.image(name))
            self.devices = None

    def deactivate(self, name):
        if device := self.device(name):
            run("blockdev", "--setrw", device)  # the kernel keeps that for the device's next file
            run("losetup", "--detach", device)
            self.devices = None

    def named(self, path):
        group, _, name = path.partition("/")
        if group != GROUP:
            fail(f'Volume group "{group}" not found')
        if name not in self.volumes:
            fail(f"Failed to find logical volume \"{path}\"")
        return name

    def pool_row(self):
        size = self.settings.get("size", 1 << 30)
        taken = 100 * min(1, sum(self.taken(name) for name in self.volumes) / size)
        return {"lv_name": POOL, "segtype": "thin-pool", "lv_size": str(size), "data_percent": f"{taken:.2f}",
                "metadata_percent": "1.00", "zero": str(self.settings.get("zero", 1)), "vg_extent_size": str(EXTENT)}

    def row(self, name):
        volume, device = self.volumes[name], self.device(name)
        taken = 100 * self.taken(name) / volume["size"]
        return {"lv_name": name, "lv_size": str(volume["size"]), "lv_tags": ",".join(volume["tags"]), "pool_lv": volume["pool"],
                "lv_dm_path": device, "lv_active": "active" if device else "",
                "data_percent": (f"{max(taken, 0.01):.2f}" if taken else "0.00") if device else ""}


def lvs(group, arguments):
    parser = argparse.ArgumentParser()
    for flag in ("--nosuffix", "--binary"):
        parser.add_argument(flag, action="store_true", required=True)
    for flag, value in (("--reportformat", "json"), ("--units", "b")):
        parser.add_argument(flag, choices=[value], required=True)
    parser.add_argument("--options", required=True)
    parser.add_argument("what")
    given = parser.parse_args(arguments)
    fields = given.options.split(",")
    if unknown := set(fields) - FIELDS:
        fail(f"Unrecognised field: {unknown}")
    if given.what == f"{GROUP}/{POOL}":
        rows = [group.pool_row()]
    elif given.what == GROUP:
        rows = [group.row(name) for name in group.volumes]
    else:
        rows = [group.row(group.named(given.what))]
    print(json.dumps({"report": [{"lv": [{field: row[field] for field in fields} for row in rows]}]}))


def lvcreate(group, arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--yes", action="store_true", required=True)
    parser.add_argument("--snapshot", action="store_true")
    parser.add_argument("--type", choices=["thin"])
    parser.add_argument("--thinpool", choices=[POOL])
    parser.add_argument("--name", required=True)
    parser.add_argument("--virtualsize")
    parser.add_argument("--wipesignatures", choices=["n"])
    parser.add_argument("--setactivationskip", choices=["n"])
    parser.add_argument("--activate", choices=["y"])
    parser.add_argument("--addtag", action="append", default=[])
    parser.add_argument("what")
    given = parser.parse_args(arguments)
    if given.name in group.volumes or given.name == POOL:
        fail(f'Logical Volume "{given.name}" already exists in volume group "{GROUP}"')
    if given.snapshot:
        origin = group.named(given.what)
        if device := group.device(origin):
            for point in mount_points(device)[:1]:
                run("sync", "--file-system", point)
            run("blockdev", "--flushbufs", device)
        run("cp", "--sparse=always", group.image(origin), group.image(given.name))
        size = group.volumes[origin]["size"]
    else:
        if given.what != GROUP:
            fail(f'Volume group "{given.what}" not found')
        size = bytes_of(given.virtualsize)
        with group.image(given.name).open("w") as image:
            image.truncate(size)
    group.volumes[given.name] = {"size": size, "tags": given.addtag, "pool": POOL}
    group.activate(given.name)
    group.commit()


def lvextend(group, arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--yes", action="store_true", required=True)
    parser.add_argument("--size", required=True)
    parser.add_argument("what")
    given = parser.parse_args(arguments)
    name, size = group.named(given.what), bytes_of(given.size)
    if size <= group.volumes[name]["size"]:
        fail("New size given is not larger than existing size")
    os.truncate(group.image(name), size)
    if device := group.device(name):
        run("losetup", "--set-capacity", device)
    group.volumes[name]["size"] = size
    group.commit()


def lvremove(group, arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--yes", action="store_true", required=True)
    parser.add_argument("what")
    name = group.named(parser.parse_args(arguments).what)
    if device := group.device(name):
        if mount_points(device):
            fail(f"Logical volume {GROUP}/{name} contains a filesystem in use.")
        group.deactivate(name)
    del group.volumes[name]
    group.commit()
    group.image(name).unlink()


def mount_points(device):
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if line.split(" - ")[1].split()[1] == device]


def lvchange(group, arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--yes", action="store_true", required=True)
    parser.add_argument("--activate", choices=["y", "n"])
    parser.add_argument("--ignoreactivationskip", action="store_true")
    parser.add_argument("--addtag")
    parser.add_argument("--deltag")
    parser.add_argument("what")
    given = parser.parse_args(arguments)
    name = group.named(given.what)
    if given.activate == "y":
        group.activate(name)
    elif given.activate == "n":
        group.deactivate(name)
    tags = group.volumes[name]["tags"]
    if given.addtag and given.addtag not in tags:
        tags.append(given.addtag)
    if given.deltag:
        tags.remove(given.deltag)
    group.commit()


COMMANDS = {"lvs": lvs, "lvcreate": lvcreate, "lvextend": lvextend, "lvremove": lvremove, "lvchange": lvchange}



def kill_if_due():
    """The driver is killed when as many commands have been done as the file says."""
    file = STATE / "kill_after"
    if not file.exists():
        return
    left = int(file.read_text()) - 1
    if left > 0:
        file.write_text(str(left))
        return
    file.unlink()
    os.kill(os.getppid(), signal.SIGKILL)


if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Group(), sys.argv[2:])
    kill_if_due()
