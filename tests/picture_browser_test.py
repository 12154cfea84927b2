#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `kolo graph --format html` and `kolo explain order --format html` in a browser: clicks, keys and pointing have their effects. In Chromium without a
window, driven by its own protocol; skipped where there is none."""
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import tool
from picture_test import A100, RING, Page, good

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """Chromium without a window, over a pipe."""

    def __init__(self, *flags):
        self.folder = tempfile.mkdtemp()
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()

        def pipes():
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             f"--user-data-dir={self.folder}", "--window-size=1500,900", *flags, "about:blank"],
            preexec_fn=pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.number, self.buffer, self.session = 0, b"", None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise AssertionError("Chromium ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            pass
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def load(self, path):
        self.call("Page.navigate", url="file://" + path)
        for _ in range(200):
            if self.ask("document.readyState === 'complete' && location.protocol === 'file:'"):
                return
            time.sleep(0.05)
        raise AssertionError("the page does not load")

    def middle(self, selector):
        x, y = self.ask(f"(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'nearest'}});"
                        "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        return x, y

    def mouse(self, kind, x, y):
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def point(self, selector):
        self.mouse("mouseMoved", *self.middle(selector))

    def click(self, selector):
        x, y = self.middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


@unittest.skipUnless(CHROMIUM, "no chromium")
class InBrowser(tool.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "picture.html")
        text = good("--topo", A100, "--hosts", "2", "--format", "html")
        cls.facts = Page(text).facts()
        with open(cls.file, "w", encoding="utf-8") as f:
            f.write(text)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.load(self.file)

    def note(self):
        return self.browser.ask("(e => e.hidden ? '' : e.innerText)(document.getElementById('note'))")

    def number(self, box):
        return self.browser.ask(f"document.querySelector('#b{box} .count').textContent")

    def test_a_click_shows_the_tree(self):
        b = self.browser
        self.assertEqual(b.ask("document.getElementById('sentence').textContent"), self.facts["graphs"][0]["sentence"])
        b.click("#graphs label:nth-of-type(2) span")
        self.assertEqual(b.ask("document.getElementById('sentence').textContent"), self.facts["graphs"][1]["sentence"])
        self.assertEqual(b.ask("location.hash"), "#graph=tree&channel=0")
        way = self.facts["graphs"][1]["ways"][0]
        for box, number in way["numbers"].items():
            self.assertEqual(self.number(box), number)
        self.assertEqual(b.ask("[...document.querySelectorAll('#way .leg')].map(p => p.getAttribute('d'))"), way["paths"])

    def test_channels_are_stepped_through(self):
        b = self.browser
        b.click("#next")
        b.click("#next")
        self.assertEqual(b.ask("document.getElementById('channel').selectedOptions[0].text"), self.facts["graphs"][0]["ways"][2]["name"])
        b.press("PageUp", 33)
        self.assertEqual(b.ask("location.hash"), "#graph=ring&channel=1")
        b.press("PageUp", 33)
        b.press("PageUp", 33)
        self.assertEqual(b.ask("location.hash"), "#graph=ring&channel=none")
        self.assertEqual(b.ask("document.querySelectorAll('#way .leg').length"), 0)

    def test_colours_follow_the_graph(self):
        b = self.browser
        for g, graph in enumerate(self.facts["graphs"]):
            b.click(f"#graphs label:nth-of-type({g + 1}) span")
            classes = b.ask("[...document.querySelectorAll('.wire')].map(w => w.getAttribute('class'))")
            for wire, name in zip(self.facts["wires"], classes):
                part = max(graph["used"].get(str(w["link"]), 0) / w["bw"] if w["bw"] else 0 for w in wire["ways"])
                step = math.ceil(4 * (part - 0.001)) if part >= 0.001 else 0
                self.assertEqual(name, f"wire s{step}", (wire, part))

    def test_keys_alone(self):
        b = self.browser
        for _ in range(12):
            b.press("Tab", 9)
            if b.ask("document.activeElement.classList.contains('gpu')"):
                break
        self.assertTrue(self.note().startswith("GPU/0\n"), self.note())
        b.press("ArrowRight", 39)
        self.assertTrue(self.note().startswith("GPU/1\n"), self.note())
        b.press("ArrowUp", 38)
        wire = next(w for w in self.facts["wires"] if {way["from"] for way in w["ways"]} == {"GPU/1", "NVSwitch"})
        for part in (wire["name"], wire["bw"], *(way["from"] for way in wire["ways"])):
            self.assertIn(part, self.note())
        self.assertEqual(b.ask("document.querySelectorAll('#drawing [tabindex=\"0\"]').length"), 1)
        b.press("Escape", 27)
        self.assertEqual(self.note(), "")

    def test_arrow_keys_choose_graph_and_channel(self):
        b = self.browser
        b.press("Tab", 9)
        b.press("ArrowRight", 39)
        self.assertEqual(b.ask("location.hash"), "#graph=tree&channel=0")
        b.press("ArrowLeft", 37)
        self.assertEqual(b.ask("location.hash"), "#graph=ring&channel=0")
        b.ask("document.getElementById('channel').focus()")
        b.press("ArrowDown", 40)
        b.press("ArrowDown", 40)
        self.assertEqual(b.ask("location.hash"), "#graph=ring&channel=2")

    def test_pointing_tells(self):
        b = self.browser
        nic = next(i for i, text in enumerate(self.facts["boxes"]) if text.startswith("NET/3"))
        b.point(f"#b{nic}")
        self.assertIn(self.facts["boxes"][nic].split("\n")[0], self.note())
        b.mouse("mouseMoved", 2, 2)
        self.assertEqual(self.note(), "")

    def test_themes(self):
        b = self.browser
        colour = "getComputedStyle(document.body).backgroundColor"
        b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        light = b.ask(colour)
        b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        dark = b.ask(colour)
        self.assertNotEqual(light, dark)
        b.click("#theme")
        self.assertEqual((b.ask(colour), b.ask("document.getElementById('theme').textContent")), (light, "theme: light"))
        b.click("#theme")
        self.assertEqual(b.ask(colour), dark)
        b.call("Emulation.setEmulatedMedia", features=[])

    def test_a_link_leads_to_a_channel(self):
        self.browser.load(self.file + "#graph=tree&channel=3")
        self.assertEqual(self.browser.ask("document.getElementById('channel').selectedOptions[0].text"), "3")
        way = next(w for w in self.facts["graphs"][1]["ways"] if 3 in w["channels"])
        self.assertEqual(self.browser.ask("document.querySelector('.legend .way').textContent"), way["title"])

    def test_a_drawing_wider_than_the_page_says_so(self):
        """At 800 px it scrolls below its captions, which stay, and fades where it goes on; the page itself does not scroll."""
        b = self.browser
        said = "[document.querySelector('.scroll').classList.contains('more'), !document.getElementById('sideways').hidden]"
        try:
            for width, more in ((800, True), (1600, False)):
                b.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
                b.load(self.file)
                self.assertEqual(b.ask(said), [more, more], width)
                self.assertLessEqual(b.ask("document.documentElement.scrollWidth"), width)
            b.call("Emulation.setDeviceMetricsOverride", width=800, height=900, deviceScaleFactor=1, mobile=False)
            b.load(self.file)
            b.ask("(e => e.scrollTo(e.scrollWidth, 0))(document.querySelector('.scroll'))")
            b.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            self.assertEqual(b.ask(said), [False, True])
            self.assertGreaterEqual(b.ask("document.getElementById('rows').getBoundingClientRect().left"), 0)
        finally:
            b.call("Emulation.clearDeviceMetricsOverride")

    def test_hosts_of_the_channel_have_their_numbers(self):
        b = self.browser
        text = good("--topo", A100, "--hosts", "16", "--format", "html")
        facts = Page(text).facts()
        with open(self.file + ".16.html", "w", encoding="utf-8") as f:
            f.write(text)
        for g, graph in enumerate(facts["graphs"]):
            b.load(f"{self.file}.16.html#graph={graph['name']}&channel=0")
            shown = facts["views"]["list"][facts["views"]["of_ways"][g][0]]["hosts"]
            said = b.ask("document.getElementById('hosts').options[2].text").removeprefix("of the channel: ")
            numbers = [n for part in said.split(", ") for a, _, z in [part.partition("\u2013")] for n in range(int(a), int(z or a) + 1)]
            self.assertEqual(numbers, shown)

    def test_elements_of_an_order_are_stepped_through(self):
        b = self.browser
        with open(self.file + ".order.html", "w", encoding="utf-8") as f:
            f.write(tool.good("explain", "order", *RING, "--format", "html"))
        shown = "[...document.querySelectorAll('.view')].filter(v => v.offsetHeight).map(v => v.id)"
        b.load(self.file + ".order.html")
        self.assertEqual(b.ask(shown), ["v0"])
        b.click("#next")
        b.press("PageDown", 34)
        self.assertEqual((b.ask(shown), b.ask("location.hash")), (["v2"], "#view=2"))
        b.press("PageUp", 33)
        self.assertEqual((b.ask(shown), b.ask("document.getElementById('view').value")), (["v1"], "1"))
        b.load(self.file + ".order.html#view=3")
        self.assertEqual((b.ask(shown), b.ask("document.getElementById('next').disabled")), (["v3"], True))


if __name__ == "__main__":
    tool.main()
