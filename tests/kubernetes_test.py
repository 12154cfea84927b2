#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The objects of docs/kubernetes.md, as far as they can be tried without a cluster: a network namespace for each pod, with its host name, and the names of a
cluster's DNS; the containers' commands, with the variables of their objects and those that the controllers set. `kolo run --netns` makes the namespaces."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import tool

try:
    import yaml
except ImportError:
    yaml = None

PAGE = "docs/kubernetes.md"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def objects():
    """{kind: object} of the page."""
    with open(PAGE, encoding="utf-8") as f:
        blocks = re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S)
    return {o["kind"]: o for block in blocks for o in yaml.safe_load_all(block)}


def container(replica):
    return replica["template"]["spec"]["containers"][0]


def variables(c, index):
    """The environment of a container: its own variables, as Kubernetes would fill them in."""
    found = {}
    for v in c.get("env", []):
        source = v.get("valueFrom", {})
        if "secretKeyRef" in source:
            found[v["name"]] = "0123456789abcdef"
        elif "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == INDEX, source
            found[v["name"]] = str(index)
        else:
            found[v["name"]] = v["value"]
    return found


class Pods:
    """Pods by name, each with a command and an environment; run() starts all of them."""

    def __init__(self, folder):
        self.folder, self.names = folder, []

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def add(self, name, service, command, env):
        number = len(self.names)
        self.names.append(f"{name}.{service} {name}")
        own = {"PATH": os.path.dirname(tool.KOLO) + ":" + os.environ["PATH"], "HOME": "/nonexistent", "KOLO_NVML": "0", **env}
        words = ["env", "-i", *(f"{k}={v}" for k, v in own.items()), "unshare", "-mu", "sh", "-c",
                 f'mount --bind {self.folder}/hosts /etc/hosts && hostname {name} && echo $$ >{self.folder}/{name}.pid && exec "$@"', name, *command]
        self.file(f"pod-{number}", f"#!/bin/sh\nexec {shlex.join(words)}\n")

    def run(self):
        self.file("hosts", "127.0.0.1 localhost\n" + "".join(f"10.77.0.{i + 1} {names}\n" for i, names in enumerate(self.names)))
        n = str(len(self.names))
        return tool.run("run", "-n", n, "--hosts", n, "--netns", "--", "sh", "-c", f"exec {self.folder}/pod-$KOLO_RANK")


@unittest.skipIf(yaml is None, "PyYAML is not installed, which reads the objects")
@unittest.skipIf(tool.SANITIZE, "other programs start the library here")
class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kolo-pods.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.pods = Pods(self.folder)
        if os.geteuid() or subprocess.run(["unshare", "-nmu", "true"], check=False, capture_output=True).returncode:
            self.skipTest("no network namespace can be made here: that needs root")

    def check(self, ranks):
        p = self.pods.run()
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("# Out of bounds values : 0 OK", p.stdout)
        self.assertEqual(len(re.findall(r"^#  Rank +\d+ ", p.stdout, re.M)), ranks, p.stdout)
        return set(re.findall(r"^#  Rank.* on +(\S+) device", p.stdout, re.M))

    def test_indexed_job(self):
        found = objects()
        job, service = found["Job"], found["Service"]["metadata"]["name"]
        spec, c = job["spec"], container(job["spec"])
        self.assertEqual((spec["completionMode"], spec["template"]["spec"]["subdomain"]), ("Indexed", service))
        self.assertEqual(found["Service"]["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        for i in range(spec["completions"]):
            self.pods.add(f"{job['metadata']['name']}-{i}", service, c["command"], variables(c, i))
        self.assertEqual(self.check(4), {f"kolo-{i}" for i in range(4)})

    def test_training_operator(self):
        job = objects()["PyTorchJob"]
        name, specs = job["metadata"]["name"], job["spec"]["pytorchReplicaSpecs"]
        pods = [(f"{name}-{kind.lower()}-{i}", container(specs[kind])) for kind in ("Master", "Worker") for i in range(specs[kind]["replicas"])]
        for rank, (pod, c) in enumerate(pods):
            own = {"RANK": str(rank), "WORLD_SIZE": str(len(pods)), "MASTER_ADDR": f"{name}-master-0", "MASTER_PORT": "23456"}
            self.pods.add(pod, name, c["command"], {**variables(c, rank), **own})
        self.assertEqual(len(self.check(4)), 4)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_mpi_operator(self):
        job = objects()["MPIJob"]
        name, specs = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
        workers = [f"{name}-worker-{i}" for i in range(specs["Worker"]["replicas"])]
        c = container(specs["Launcher"])
        self.pods.file("hostfile", "".join(f"{w}.{name} slots={job['spec']['slotsPerWorker']}\n" for w in workers))
        agent = self.pods.file("agent", f"#!/bin/sh\npod=${{1%%.*}}\nshift\nexec nsenter -t $(cat {self.folder}/$pod.pid) -n -u -m sh -c \"$*\"\n")
        links = [os.path.join(self.folder, f"{w}.link") for w in workers]  # a worker lives until the launcher has closed its end
        for link in links:
            os.mkfifo(link)
        ends = " ".join(f"{3 + i}>{link}" for i, link in enumerate(links))
        command = ["sh", "-c", f'exec {ends} && "$@"', "launcher", *c["command"]]
        operator = {"OMPI_MCA_orte_default_hostfile": f"{self.folder}/hostfile", "OMPI_MCA_plm_rsh_agent": agent, "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": self.folder}
        self.pods.add(f"{name}-launcher", name, command, {**variables(c, 0), **operator})
        for w, link in zip(workers, links):
            self.pods.add(w, name, ["sh", "-c", f"read x <{link} || :"], {})
        self.assertEqual(self.check(4), set(workers))


if __name__ == "__main__":
    tool.main()
