/* SPDX-License-Identifier: Apache-2.0 */
/* The script of the button that changes the theme, on every page. */
"use strict";
(function () {
    const button = document.getElementById("theme"), themes = ["automatic", "light", "dark"];

    button.addEventListener("click", () => {
        const root = document.documentElement, now = root.dataset.theme || "automatic";
        const next = themes[(themes.indexOf(now) + 1) % themes.length];
        if (next === "automatic") delete root.dataset.theme;
        else root.dataset.theme = next;
        button.textContent = "theme: " + next;
    });
})();
