# SPDX-License-Identifier: GPL-2.0-only
"""Secure Boot: OVMF, and a machine whose owner gives it the key that DKMS has signed with.

Debian's kernel takes a module by a key of the firmware's, be it one of shim's list of the owner
(MokListRT, which mokutil fills) or of db.  Here it is db: that needs no shim and no blue screen.
"""
import copy, struct, subprocess
from pathlib import Path
from system import image

CODE, VARS = (Path("/usr/share/OVMF/OVMF_" + f) for f in ("CODE_4M.secboot.fd", "VARS_4M.fd"))
OWNER = "0badcafe-0000-4000-8000-000000000001"
GLOBAL, SECURITY = "8be4df61-93ca-11d2-aa0d-00e098032b8c", "d719b2cb-3d3a-4596-a3bc-dad00e67656f"
VARIABLES = {"db": SECURITY, "KEK": GLOBAL, "PK": GLOBAL}       # the last ends the setup mode
# non-volatile, for boot and run time, authenticated by time
ATTRIBUTES = struct.pack("<I", 0x27)


def run(*args):
    return subprocess.run([str(a) for a in args], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120).stdout


class Firmware:
    """Of one machine, without keys at first."""
    def __init__(self, directory, disk):
        """The key is the one on the disk of a system that DKMS has built modules in."""
        self.dir = Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.key, self.cert = self.dir / "mok.key", self.dir / "mok.pem"
        der = self.dir / "mok.pub"
        for f in self.key, der:
            f.write_bytes(run("debugfs", "-R", f"cat /var/lib/dkms/{f.name}", disk))
        run("openssl", "x509", "-inform", "DER", "-in", der, "-out", self.cert)
        self.vars = self.dir / "vars.fd"
        self.vars.write_bytes(VARS.read_bytes())

    def qemu(self):
        return ["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on",
                "-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={CODE}",
                "-drive", f"if=pflash,unit=1,format=raw,file={self.vars}"]

    def boot(self, plain):
        """The same, its kernel signed with the key."""
        boot = copy.copy(plain)
        boot.kernel = self.dir / "vmlinuz"
        run("sbsign", "--key", self.key, "--cert", self.cert, "--output", boot.kernel,
            image.kernel_root(plain.kver) / f"boot/vmlinuz-{plain.kver}")
        return boot

    def enrol(self, put):
        """A script that makes the key the only one that the firmware has; put(name, bytes) brings
        files into the machine."""
        lists = self.dir / "cert.esl"
        run("cert-to-efi-sig-list", "-g", OWNER, self.cert, lists)
        script = ""
        for name, guid in VARIABLES.items():
            auth = self.dir / f"{name}.auth"
            run("sign-efi-sig-list", "-g", OWNER, "-k", self.key, "-c", self.cert, name, lists,
                auth)
            put(f"{name}.var", ATTRIBUTES + auth.read_bytes())
            script += f"cat /h/{name}.var > /sys/firmware/efi/efivars/{name}-{guid}\n"
        return script
