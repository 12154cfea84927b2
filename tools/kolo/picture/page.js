/* SPDX-License-Identifier: Apache-2.0 */
/* The script of `kolo graph --format html`: chooses the visible parts of the drawing. All its texts were written by
   kolo; it only adds up the used part of each link. */
"use strict";
(function () {
    const facts = JSON.parse(document.getElementById("facts").textContent);
    const byId = (id) => document.getElementById(id);
    const drawing = byId("drawing"), note = byId("note"), select = byId("channel");
    const boxes = facts.boxes.map((_, i) => byId("b" + i)), wires = facts.wires.map((_, i) => byId("w" + i));
    const SVG = "http://www.w3.org/2000/svg";
    const hosts = byId("hosts");
    let graph = 0, channel = facts.first, shown = null;
    let now = { boxes: facts.boxes, wires: facts.wires };

    /* ---- which hosts ---- */

    function viewNumber() {
        if (!hosts) return 0;
        if (hosts.value === "channel") return channel < 0 ? 0 : facts.views.of_ways[graph][channel];
        return hosts.value === "last" ? 1 : 0;
    }

    /* The way of the channel among the hosts that are shown. */
    function wayHere() {
        const way = facts.graphs[graph].ways[channel], ways = now.ways && now.ways[graph];
        return (ways && ways[channel]) || way;
    }

    function nameBoxes() {
        now.names.forEach((name, i) => {
            const text = boxes[i] && boxes[i].querySelector(".name, .title");
            if (!text || text.textContent === name || boxes[i].classList.contains("nic")) return;
            text.textContent = name;
            if (boxes[i].classList.contains("gpu")) text.style.fontSize = Math.min(12.5, 80 / name.length) + "px";
        });
        boxes.forEach((box, i) => box && box.classList.contains("box") && box.setAttribute("aria-label", now.boxes[i]));
        wires.forEach((wire, i) => wire.setAttribute("aria-label", now.wires[i].name + ", " + now.wires[i].bw));
    }

    /* Name the last choice of hosts: it differs from channel to channel. */
    function nameHosts() {
        const view = facts.views.list[channel < 0 ? 0 : facts.views.of_ways[graph][channel]];
        hosts.options[2].text = "of the channel: " + ranges(view.hosts);
    }

    function showHosts() {
        const view = hosts && facts.views.list[viewNumber()];
        if (hosts) nameHosts();
        if (!view || view === now) return;
        now = view;
        nameBoxes();
    }

    const used = (link) => facts.graphs[graph].used[link] || 0;

    /* ---- loads ---- */

    function part(way) {
        return way.bw ? used(way.link) / way.bw : 0;
    }

    /* As kl_load_step has it. */
    function step(part) {
        if (part < 0.001) return 0;
        return Math.min(4, Math.max(1, Math.ceil(4 * (part - 0.001))));
    }

    function colourWires() {
        now.wires.forEach((w, i) => {
            const most = Math.max(0, ...w.ways.map(part));
            wires[i].setAttribute("class", "wire s" + step(most));
        });
    }

    /* ---- the way of a channel ---- */

    function element(name, attributes) {
        const e = document.createElementNS(SVG, name);
        for (const key in attributes) e.setAttribute(key, attributes[key]);
        return e;
    }

    function drawWay(way) {
        const legs = [];
        for (const d of way ? way.paths : []) {
            legs.push(element("path", { class: "under", d: d }));
            legs.push(element("path", { class: "leg", d: d, "marker-end": "url(#tip)" }));
        }
        byId("way").replaceChildren(...legs);
    }

    function numberBoxes(way) {
        boxes.forEach((box, i) => {
            const number = box && box.querySelector(".number");
            if (!number) return;
            const text = way ? way.numbers[i] : undefined;
            number.classList.toggle("none", text === undefined);
            number.querySelector(".count").textContent = text === undefined ? "" : text;
        });
    }

    /* ---- showing a choice ---- */

    function listChannels() {
        const ways = facts.graphs[graph].ways;
        const options = ways.map((way, i) => new Option(way.name, i));
        options.push(new Option("none", -1));
        select.replaceChildren(...options);
    }

    function show() {
        const g = facts.graphs[graph];
        showHosts();
        const way = channel < 0 ? undefined : wayHere();
        document.querySelectorAll("input[name=graph]").forEach((r) => (r.checked = +r.value === graph));
        select.value = channel;
        colourWires();
        drawWay(way);
        numberBoxes(way);
        byId("sentence").textContent = g.sentence;
        document.querySelectorAll(".times").forEach((t) => (t.hidden = +t.dataset.graph !== graph));
        document.querySelector(".legend .way").textContent = way ? way.title : "no channel is shown";
        document.querySelector(".legend .arrows").textContent = way ? g.arrows : "";
        history.replaceState(null, "", "#graph=" + g.name + "&channel=" + (way ? way.channels[0] : "none") +
            (hosts && hosts.value !== "first" ? "&hosts=" + hosts.value : ""));
        if (shown) tell(shown);
    }

    function choose(g, c) {
        if (g !== graph) {
            graph = g;
            listChannels();
        }
        channel = c;
        show();
    }

    /* Channels in a circle, "none" among them. */
    function stepChannel(by) {
        const n = facts.graphs[graph].ways.length + 1;
        const at = channel < 0 ? n - 1 : channel;
        const to = (at + by + n) % n;
        choose(graph, to === n - 1 ? -1 : to);
    }

    /* ---- a drawing that is wider than the page ---- */

    const scroller = document.querySelector(".scroll");

    function showEnds() {
        const hidden = scroller.scrollWidth - scroller.clientWidth;
        scroller.classList.toggle("more", scroller.scrollLeft < hidden - 2);
        byId("sideways").hidden = hidden < 3;
    }

    /* ---- notes ---- */

    /* "0-3, 8": numbers with neighbours together. */
    function ranges(numbers) {
        const parts = [];
        for (const n of numbers) {
            const last = parts[parts.length - 1];
            if (last && last[1] === n - 1) last[1] = n;
            else parts.push([n, n]);
        }
        return parts.map(([a, b]) => (a === b ? a : a + "\u2013" + b)).join(", ");
    }

    function channelsThrough(links) {
        const ways = facts.graphs[graph].ways.filter((w) => w.uses.some((k) => links.includes(k)));
        const numbers = ways.flatMap((w) => w.channels).sort((a, b) => a - b);
        return numbers.length ? ranges(numbers) : "none";
    }

    function line(parent, tag, text) {
        const e = document.createElement(tag);
        e.textContent = text;
        parent.append(e);
        return e;
    }

    function tellBox(i) {
        const lines = now.boxes[i].split("\n"), number = boxes[i].querySelector(".count");
        line(note, "b", lines[0]);
        for (const text of lines.slice(1)) line(note, "div", text);
        if (number && number.textContent && channel >= 0)
            line(note, "div", "in the shown channel: " + number.textContent);
    }

    function tellWire(i) {
        const w = now.wires[i], g = facts.graphs[graph];
        line(note, "b", w.name);
        line(note, "div", w.bw);
        const table = line(note, "table", "");
        for (const way of w.ways) {
            const row = line(table, "tr", ""), gbps = +used(way.link).toFixed(3);
            line(row, "td", way.from + " \u2192 " + way.to);
            line(row, "td", gbps + " GB/s" + (way.bw ? " (" + Math.round(100 * part(way)) + " %)" : ""));
        }
        line(note, "div", g.name + " channels that use it: " + channelsThrough(w.ways.map((way) => way.link)));
    }

    function place(item) {
        const r = item.getBoundingClientRect(), n = note.getBoundingClientRect();
        const left = Math.min(r.left + r.width / 2 + 14, innerWidth - n.width - 12);
        const below = r.bottom + 10 + n.height < innerHeight;
        note.style.left = Math.max(8, left) + scrollX + "px";
        note.style.top = Math.max(4, below ? r.bottom + 10 : r.top - n.height - 10) + scrollY + "px";
    }

    function tell(item) {
        const i = +item.id.slice(1);
        quiet();
        shown = item;
        item.classList.add("on");
        if (item.id[0] === "b") tellBox(i);
        else tellWire(i);
        note.hidden = false;
        place(item);
    }

    function quiet() {
        if (shown) shown.classList.remove("on");
        shown = null;
        note.hidden = true;
        note.replaceChildren();
    }

    /* ---- moving the focus over the drawing ---- */

    const items = [...drawing.querySelectorAll(".box, .wire")];

    function middle(item) {
        const r = item.getBoundingClientRect();
        return [r.left + r.width / 2, r.top + r.height / 2];
    }

    /* The nearest thing within 45 degrees of a direction, else nearly so. */
    function towards(from, dx, dy) {
        const [x, y] = middle(from);
        let best = null, least = Infinity;
        for (const item of items) {
            const [ix, iy] = middle(item);
            const along = (ix - x) * dx + (iy - y) * dy, aside = Math.abs((ix - x) * dy) + Math.abs((iy - y) * dx);
            if (item === from || along < 1) continue;
            const far = along + 2.5 * aside;
            if (far < least) [best, least] = [item, far];
        }
        return best;
    }

    function focus(item) {
        if (!item) return;
        items.forEach((i) => i.setAttribute("tabindex", "-1"));
        item.setAttribute("tabindex", "0");
        item.focus();
    }

    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

    /* ---- events ---- */

    function fromHash() {
        const want = new URLSearchParams(location.hash.slice(1));
        const g = facts.graphs.findIndex((x) => x.name === want.get("graph"));
        if (hosts && ["first", "last", "channel"].includes(want.get("hosts"))) hosts.value = want.get("hosts");
        if (g < 0) return;
        const c = facts.graphs[g].ways.findIndex((w) => w.channels.includes(Number(want.get("channel"))));
        choose(g, want.get("channel") === "none" ? -1 : Math.max(0, c));
    }

    document.querySelectorAll("input[name=graph]").forEach((r) => r.addEventListener("change", () => choose(+r.value, 0)));
    select.addEventListener("change", () => choose(graph, +select.value));
    if (hosts) hosts.addEventListener("change", show);
    byId("previous").addEventListener("click", () => stepChannel(-1));
    byId("next").addEventListener("click", () => stepChannel(1));
    addEventListener("hashchange", fromHash);
    addEventListener("resize", showEnds);
    scroller.addEventListener("scroll", showEnds);
    document.addEventListener("keydown", (e) => {
        const item = e.target.closest && e.target.closest(".box, .wire");
        if (e.altKey || e.ctrlKey || e.metaKey) return;
        if (e.key === "Escape") quiet();
        else if (e.key === "PageUp") stepChannel(-1);
        else if (e.key === "PageDown") stepChannel(1);
        else if (item && arrows[e.key]) focus(towards(item, ...arrows[e.key]));
        else return;
        e.preventDefault();
    });
    for (const item of items) {
        item.addEventListener("mouseenter", () => tell(item));
        item.addEventListener("mouseleave", quiet);
        item.addEventListener("focus", () => tell(item));
        item.addEventListener("blur", quiet);
        item.addEventListener("click", () => focus(item));
    }
    const first = drawing.querySelector(".gpu") || items[0];
    if (first) first.setAttribute("tabindex", "0");
    fromHash();
    show();
    showEnds();
})();
