/* The script of `kolo explain order --format html`: chooses the view that is shown. Without it, all are. */
"use strict";
(function () {
    const select = document.getElementById("view");
    const views = [...document.querySelectorAll(".view")];

    function show(view) {
        select.value = Math.max(0, Math.min(views.length - 1, view));
        views.forEach((v, i) => (v.hidden = i !== +select.value));
        document.getElementById("previous").disabled = +select.value === 0;
        document.getElementById("next").disabled = +select.value === views.length - 1;
    }

    function choose(view) {
        show(view);
        history.replaceState(null, "", "#view=" + select.value);
    }

    function fromHash() {
        show(Number(new URLSearchParams(location.hash.slice(1)).get("view")) || 0);
    }

    select.addEventListener("change", () => choose(+select.value));
    document.getElementById("previous").addEventListener("click", () => choose(+select.value - 1));
    document.getElementById("next").addEventListener("click", () => choose(+select.value + 1));
    addEventListener("hashchange", fromHash);
    document.addEventListener("keydown", (e) => {
        if (e.altKey || e.ctrlKey || e.metaKey) return;
        if (e.key === "PageUp") choose(+select.value - 1);
        else if (e.key === "PageDown") choose(+select.value + 1);
        else return;
        e.preventDefault();
    });
    fromHash();
})();
