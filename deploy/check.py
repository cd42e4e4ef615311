"""Renders the chart with Helm's own engine and holds it against the binary's promises.

    pip install helm-python-sdk==0.2.2 pyyaml && python deploy/check.py

The unit is checked by `systemd-analyze verify` where that is at hand. The image is not built here: its base images come
from a container registry.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml
from helm_python import chart

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE / "helm" / "chorus"
VALUES = {"config": "version: v0.3\nproviders: {}\n", "secrets": ["keys"], "extraArgs": ["--offline"]}


def rendered(**values):
    """The objects of the chart, by kind."""
    templates = chart.Chart.load(CHART).render({**VALUES, **values}, name="one", namespace="models")
    objects = (yaml.safe_load(text) for path, text in templates.items() if path.endswith(".yaml"))
    return {found["kind"]: found for found in objects if found}


class Helm(unittest.TestCase):
    def test_the_configuration_arrives_as_written(self):
        self.assertEqual(rendered()["ConfigMap"]["data"]["config.yaml"].strip(), VALUES["config"].strip())

    def test_helm_has_nothing_to_say(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(CHART, pathlib.Path(folder) / "chorus")
            values = copy / "values.yaml"
            values.write_text(yaml.safe_dump({**yaml.safe_load(values.read_text()), **VALUES}))
            report = chart.lint(copy)
        self.assertEqual([found for found in report["messages"] if found["severity"] > 1], [])

    def test_no_configuration_is_refused_with_the_key(self):
        with self.assertRaisesRegex(Exception, "values.config"):
            rendered(config="")

    def test_the_service_finds_the_pod_and_the_pod_waits_for_its_requests(self):
        found = rendered(grace=90)
        pod = found["Deployment"]["spec"]["template"]
        self.assertLessEqual(found["Service"]["spec"]["selector"].items(), pod["metadata"]["labels"].items())
        self.assertEqual(pod["spec"]["terminationGracePeriodSeconds"], 100)
        self.assertIn("--grace=90", pod["spec"]["containers"][0]["args"])

    def test_without_persistence_nothing_is_claimed(self):
        found = rendered(persistence={"enabled": False})
        self.assertNotIn("PersistentVolumeClaim", found)
        self.assertIn({"name": "state", "emptyDir": {}}, found["Deployment"]["spec"]["template"]["spec"]["volumes"])

    def test_the_root_is_read_only_and_nobody_is_root(self):
        spec = rendered()["Deployment"]["spec"]["template"]["spec"]
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])
        self.assertTrue(spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"])


class Unit(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_reads_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "chorus.service"
            unit.write_text((HERE / "chorus.service").read_text().replace("/usr/local/bin/chorus", sys.executable))
            done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
