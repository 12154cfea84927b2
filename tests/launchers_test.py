# SPDX-License-Identifier: Apache-2.0
"""Ranks of one host as launchers start them: they share no address, and find each other by their launcher's variables, again and again,
beside other jobs, and after runs that were killed."""
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import jobs
import tool

BOUND_S = tool.HANG_S
PERF = f"{tool.KOLO} perf barrier -n 1"


def clean(**env):
    """The environment without the variables of another launcher, or a test's settings."""
    named = ("NCCL_", "KOLO_", "SLURM_", "PMI", "MPI_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(named)}, "HOME": "/nonexistent", "KOLO_NVML": "0",
            "KOLO_BOOTSTRAP_TIMEOUT": str(BOUND_S // 2), **env}


def slurm(rank, size, job):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": job,
            "SLURM_STEP_ID": "0"}


def mpich(rank, size):
    return {"PMI_RANK": str(rank), "PMI_SIZE": str(size), "MPI_LOCALNRANKS": str(size), "PMI_FD": str(100 + rank)}


def files():
    return glob.glob(f"/dev/shm/kolo-{os.geteuid()}-*-rendezvous")


class Launchers(unittest.TestCase):
    def start(self, command, **env):
        p = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean(**env))
        self.addCleanup(p.stdout.close)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p

    def fine(self, processes):
        for p in processes:
            said = p.communicate(timeout=BOUND_S)[0]
            self.assertEqual(p.returncode, 0, said)

    def job(self):
        """A name that no other job has: Slurm's number."""
        return f"{os.getpid()}{self.id()}"

    def test_a_requeued_job_does_not_take_the_id_of_its_killed_first_run(self):
        job, before = self.job(), set(files())
        first = self.start("exec " + PERF, **slurm(0, 2, job))
        stale = jobs.until(lambda: set(files()) - before, "the id of rank 0").pop()
        first.send_signal(signal.SIGKILL)
        first.wait()
        self.assertTrue(os.path.exists(stale))
        late = self.start("exec " + PERF, **slurm(1, 2, job))
        jobs.until(lambda: not os.path.exists(stale), "the stale file is removed by the rank that finds it")
        self.fine([late, self.start("exec " + PERF, **slurm(0, 2, job))])

    def test_another_job_removes_what_a_killed_one_has_left(self):
        before = set(files())
        killed = self.start("exec " + PERF, **slurm(0, 2, self.job()))
        stale = jobs.until(lambda: set(files()) - before, "the id of rank 0").pop()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        other = self.job() + "other"
        self.fine([self.start("exec " + PERF, **slurm(rank, 2, other)) for rank in (0, 1)])
        self.assertFalse(os.path.exists(stale))

    def test_runs_one_after_the_other_do_not_mix(self):
        """Ranks run ahead of each other: a rank that is done begins the next run at once."""
        job, loop = self.job(), f"for i in 1 2 3 4 5 6 7 8 9 10; do {PERF} || exit 1; done"
        self.fine([self.start(loop, **slurm(rank, 3, job)) for rank in range(3)])

    def test_ranks_in_scripts_of_their_own_meet(self):
        """As MPICH starts them: nothing names the job but the launcher's process, and each rank has a shell between."""
        self.fine([self.start(f"{PERF}; exit $?", **mpich(rank, 3)) for rank in range(3)])

    def test_two_jobs_at_once_stay_apart(self):
        ranks = "".join("env " + " ".join(f"{k}={v}" for k, v in mpich(rank, 2).items()) + f" sh -c '{PERF}; exit $?' & pids=\"$pids $!\"; "
                        for rank in (0, 1))
        launcher = ranks + "for pid in $pids; do wait $pid || exit 1; done"
        self.fine([self.start(launcher) for _ in range(3)])

    def test_a_full_folder_gives_way_to_the_next(self):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm"], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            self.skipTest("no folder can be mounted here")
        ranks = "".join(f"env {' '.join(f'{k}={v}' for k, v in mpich(rank, 2).items())} {PERF} & pids=\"$pids $!\"; " for rank in (0, 1))
        fill = "mount -t tmpfs -o size=4k none /dev/shm && ! cat /dev/zero >/dev/shm/all 2>/dev/null || exit 1; "
        with subprocess.Popen(["unshare", "-m", "sh", "-c", fill + ranks + "for pid in $pids; do wait $pid || exit 1; done"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean()) as p:
            self.fine([p])

    def test_no_folder_is_said_at_once(self):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm"], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            self.skipTest("no folder can be mounted here")
        hide = "for d in /dev/shm /run/user /tmp; do test ! -d $d || { mount --bind $d $d && mount -o remount,ro,bind $d; }; done; exec "
        p = subprocess.run(["unshare", "-m", "sh", "-c", hide + PERF], capture_output=True, text=True, timeout=BOUND_S, check=False,
                           env=clean(**slurm(0, 2, self.job())))
        self.assertNotEqual(p.returncode, 0)
        self.assertRegex(p.stderr, r"no place for a file .*/dev/shm/kolo-.*: Read-only file system; .*/tmp/kolo-.*: Read-only")

    def test_mpi_of_this_machine(self):
        tried = 0
        for mpirun, words in (("mpirun.openmpi", ("--oversubscribe",)), ("mpirun.mpich", ())):
            if not shutil.which(mpirun):
                continue
            tried += 1
            with self.subTest(mpirun), tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
                script.write(f"for i in 1 2 3 4 5; do {PERF} || exit 1; done\n")
                script.flush()
                self.fine([subprocess.Popen([mpirun, *words, "-np", "3", "sh", script.name], stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True,
                                            env=clean(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))])
        if not tried:
            self.skipTest("no MPI is installed with mpirun.openmpi or mpirun.mpich")


if __name__ == "__main__":
    tool.main()
