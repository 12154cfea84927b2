# SPDX-License-Identifier: Apache-2.0
"""MkDocs' hooks: the anchors of headings are those that GitHub makes, so that one link is right in both."""
import re


def anchor(heading, _separator):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config
