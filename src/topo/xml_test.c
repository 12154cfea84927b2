/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/xml.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static ncclResult_t parse(const char *text, struct kl_xml **xml)
{
    return kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, xml);
}

static struct kl_xml *parsed(const char *text)
{
    struct kl_xml *xml;

    assert_int_equal(parse(text, &xml), ncclSuccess);
    return xml;
}

static char *written(const struct kl_xml *xml)
{
    char *text;
    size_t bytes;

    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    assert_int_equal(strlen(text), bytes);
    return text;
}

/* ---- reading ---- */

static const struct read_case {
    const char *name, *text, *want; /* want: as written again; NULL: refused */
    const char *error;              /* part of the sentence */
} read_cases[] = {
    {"plain", "<system version=\"1\"/>", "<system version=\"1\"/>\n", NULL},
    {"children", "<system version=\"1\"><cpu a=\"1\"></cpu><cpu/></system>",
     "<system version=\"1\">\n  <cpu a=\"1\"/>\n  <cpu/>\n</system>\n", NULL},
    {"declaration", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<system/>", "<system/>\n", NULL},
    {"comments", "<!-- a=b --><system><!-- < > = --><cpu/><!----></system>", "<system>\n  <cpu/>\n</system>\n", NULL},
    {"tabs and newlines", "<system\n\tversion=\"1\"  >\n\t<cpu\r\n a=\"1\" />\r\n</system >",
     "<system version=\"1\">\n  <cpu a=\"1\"/>\n</system>\n", NULL},
    {"single quotes", "<system version='1'/>", "<system version=\"1\"/>\n", NULL},
    {"> and / in values", "<system a=\"x/>y\"/>", "<system a=\"x/>y\"/>\n", NULL},
    {"references", "<system a=\"&lt;&amp;&quot;&#9;\"/>", "<system a=\"&lt;&amp;&quot;&#9;\"/>\n", NULL},
    {"Latin-1", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><system a=\"\xe9\"/>", "<system a=\"\xc3\xa9\"/>\n",
     NULL},
    {"unknown elements", "<system><x><cpu/><y/></x><cpu><net/><nic/></cpu></system>",
     "<system>\n  <cpu>\n    <nic/>\n  </cpu>\n</system>\n", NULL},
    {"another root", "<graphs version=\"1\"><system/></graphs>", "", NULL},
    {"unknown attributes", "<system version=\"1\" zeta=\"2\" alpha=\"3\"/>",
     "<system version=\"1\" zeta=\"2\" alpha=\"3\"/>\n", NULL},
    {"nothing", "", "", NULL},
    {"blanks", " \n\t\r\n", "", NULL},
    {"wrong end", "<system>\n<cpu>\n</system>", NULL, "t.xml:3: "},
    {"names the open element", "<system>\n<cpu>\n</system>", NULL, "<cpu> of line 2"},
    {"no end", "<system>\n<cpu>", NULL, "t.xml:2: "},
    {"no end of a comment", "<system><!-- </system>", NULL, "t.xml:1: "},
    {"no end of a tag", "<system version=\"1\"", NULL, "t.xml:1: "},
    {"no value", "<system version>", NULL, "t.xml:1: "},
    {"no quotes", "<system version=1/>", NULL, "t.xml:1: "},
    {"text", "<system>\n\n hello</system>", NULL, "t.xml:3: text between the elements"},
    {"two roots", "<system/>\n<system/>", NULL, "t.xml:2: "},
    {"twice the same attribute", "<system a=\"1\" a=\"2\"/>", NULL, "t.xml:1: duplicate attribute"},
    {"document type", "<!DOCTYPE system [<!ENTITY a \"b\">]><system/>", NULL, "t.xml:1: a document type declaration"},
    {"not UTF-8", "<system a=\"\xe9\"/>", NULL, "t.xml:1: "},
    {"no XML", "hello", NULL, "t.xml:1: "},
};

static void reads_what_is_well_formed(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, read_cases)
    {
        struct kl_xml *xml = NULL;

        if (!c->want) {
            expect_case(c->name, parse(c->text, &xml) == ncclInternalError);
            if (!strstr(kl_error_text(), c->error)) fail_msg("case \"%s\": %s", c->name, kl_error_text());
            continue;
        }
        expect_case(c->name, parse(c->text, &xml) == ncclSuccess);
        char *text = written(xml);
        if (strcmp(text, c->want) != 0) fail_msg("case \"%s\": %s", c->name, text);
        free(text);
        kl_xml_free(xml);
    }
}

static void a_zero_byte_is_no_blank(void **state)
{
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_xml_parse("t.xml", "\0", 1, kl_xml_topo_schema, &xml), ncclInternalError);
}

static void attributes_keep_their_lines(void **state)
{
    struct kl_xml *xml = parsed("<!-- -->\n<system version=\"1\">\n\n  <cpu\n    numaid=\"0\"/></system>");

    (void)state;
    assert_int_equal(kl_xml_line(xml, KL_XML_ROOT), 2);
    assert_int_equal(kl_xml_line(xml, kl_xml_find(xml, "cpu", "numaid", "0")), 4);
    kl_xml_free(xml);
}

/* ---- bounds ---- */

static char *repeated(const char *before, const char *piece, int n, const char *after)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    fputs(before, to);
    for (int i = 0; i < n; i++) fputs(piece, to);
    fputs(after, to);
    fclose(to);
    return text;
}

static void expect_refused(const char *what, char *text, const char *error)
{
    struct kl_xml *xml;

    expect_case(what, parse(text, &xml) == ncclInternalError);
    if (!strstr(kl_error_text(), error)) fail_msg("%s: %s", what, kl_error_text());
    free(text);
}

static void hostile_files_are_refused(void **state)
{
    struct kl_xml *xml;
    char *text;

    (void)state;
    expect_refused("deep", repeated("<system>", "<x>", 64, ""), "nested too deep");
    expect_refused("deep switches", repeated("<system><cpu>", "<pci>", 100000, ""), "nested too deep");
    expect_refused("long value", repeated("<system a=\"", "0123456789", 500, "\"/>"), "too long");
    expect_refused("long tag", repeated("<system><x", "xxxxxxxxxx", 500, "/>"), "too long");
    expect_refused("elements", repeated("<system>", "<cpu/>", 1 << 20, "</system>"), "more than 1048576 elements");

    text = repeated("<system>", "<cpu/>", 100000, "</system>"); /* many, but not too many */
    assert_int_equal(parse(text, &xml), ncclSuccess);
    assert_int_equal(kl_xml_count(xml), 100001);
    kl_xml_free(xml);
    free(text);
}

static void attributes_are_bounded(void **state)
{
    char text[4096] = "<system";
    struct kl_xml *xml;

    (void)state;
    for (int i = 0; i < 64; i++) snprintf(text + strlen(text), sizeof text - strlen(text), " a%d=\"%d\"", i, i);
    size_t n = strlen(text);
    memcpy(text + n, "/>", 3);
    assert_int_equal(parse(text, &xml), ncclSuccess);
    assert_string_equal(kl_xml_attr(xml, 0, "a63"), "63");
    kl_xml_free(xml);
    memcpy(text + n, " b=\"\"/>", 8);
    assert_int_equal(parse(text, &xml), ncclInternalError);
}

/* ---- values ---- */

static const struct int_case {
    const char *text;
    int want;
} int_cases[] = {
    {"7", 7},
    {"-1", -1},
    {"0x10", 16},
    {"010", 8},
    {"", 0},
    {"abc", 0},
    {"12abc", 12},
    {" 3", 3},
    {"99999999999", INT32_MAX},
    {"-99999999999", INT32_MIN},
};

static void numbers_are_read_as_c_does(void **state)
{
    struct kl_xml *xml = parsed("<system/>");
    int i;

    (void)state;
    FOR_EACH_CASE(c, int_cases)
    {
        assert_int_equal(kl_xml_set(xml, 0, "i", c->text), ncclSuccess);
        expect_case(c->text, kl_xml_int(xml, 0, "i", 42) == c->want);
        expect_case(c->text, !kl_xml_need_int(xml, 0, "i", &i) && i == c->want);
    }
    assert_int_equal(kl_xml_int(xml, 0, "none", 42), 42);
    i = 5;
    assert_int_equal(kl_xml_need_int(xml, 0, "none", &i), ncclInternalError);
    assert_int_equal(i, 5);
    assert_string_equal(kl_error_text(), "t.xml:1: <system> has no attribute none, which is required");
    kl_xml_free(xml);
}

static const struct word_case {
    const char *text;
    int want;
} word_cases[] = {{"0x060400", 1}, {"0x06", 2}, {"0x0", 9}, {"", 9}};

static void words_match_as_prefixes(void **state)
{
    static const struct kl_xml_word words[] = {{"0x0604", 1}, {"0x06", 2}, {NULL, 9}};
    struct kl_xml *xml = parsed("<system/>");
    int value;

    (void)state;
    FOR_EACH_CASE(c, word_cases)
    {
        assert_int_equal(kl_xml_set(xml, 0, "class", c->text), ncclSuccess);
        expect_case(c->text, !kl_xml_need_word(xml, 0, "class", words, &value) && value == c->want);
    }
    kl_xml_free(xml);
}

static const struct version_case {
    const char *text;
    ncclResult_t rc;
} version_cases[] = {
    {"<system version=\"1\"/>", ncclSuccess},       {"<system version=\"2\"/>", ncclInvalidUsage},
    {"<system version=\"x\"/>", ncclInvalidUsage},  {"<system/>", ncclInternalError},
    {"<graphs version=\"1\"/>", ncclInternalError}, {"", ncclInternalError},
};

static void version_must_be_1(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, version_cases)
    {
        struct kl_xml *xml = parsed(c->text);

        expect_case(c->text, kl_xml_check_system(xml) == c->rc);
        kl_xml_free(xml);
    }
}

static void graphs_have_a_schema_of_their_own(void **state)
{
    static const char text[] = "<graphs version=\"1\"><graph id=\"0\"><channel><net dev=\"0x1\"/><gpu dev=\"0\"/>"
                               "<cpu/></channel></graph></graphs>";
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_xml_parse("g.xml", text, strlen(text), kl_xml_graph_schema, &xml), ncclSuccess);
    assert_int_equal(kl_xml_count(xml), 5);
    kl_xml_free(xml);
}

/* ---- changing ---- */

static void attributes_can_be_set(void **state)
{
    struct kl_xml *xml = parsed("<system b=\"1\" a=\"2\"/>");

    (void)state;
    kl_xml_set(xml, 0, "c", "3");
    kl_xml_set(xml, 0, "b", "9"); /* in place */
    kl_xml_unset(xml, 0, "a");
    kl_xml_unset(xml, 0, "not there");
    kl_xml_set_int(xml, 0, "i", -4);
    kl_xml_set_hex(xml, 0, "h", 0xabc);
    kl_xml_set_hex(xml, 0, "z", 0);
    char *text = written(xml);
    assert_string_equal(text, "<system b=\"9\" c=\"3\" i=\"-4\" h=\"0xabc\" z=\"0\"/>\n");
    free(text);
    kl_xml_free(xml);
}

static void elements_are_placed_by_bus_id(void **state)
{
    static const char *const busid[] = {"0000:03:00.0", "0000:01:00.0", "0000:02:00.0", "0000:01:00.0"};
    struct kl_xml *xml = parsed("<system><cpu><nic/></cpu></system>");
    int cpu = kl_xml_child(xml, 0, "cpu"), elem;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(kl_xml_new(xml, "pci", &elem), ncclSuccess);
        kl_xml_set(xml, elem, "busid", busid[i]);
        kl_xml_set_int(xml, elem, "i", i);
        kl_xml_place(xml, elem, cpu, busid[i]);
    }
    char *text = written(xml);
    assert_string_equal(text, "<system>\n  <cpu>\n    <nic/>\n    <pci busid=\"0000:01:00.0\" i=\"1\"/>\n"
                              "    <pci busid=\"0000:01:00.0\" i=\"3\"/>\n    <pci busid=\"0000:02:00.0\" i=\"2\"/>\n"
                              "    <pci busid=\"0000:03:00.0\" i=\"0\"/>\n  </cpu>\n</system>\n");
    free(text);
    kl_xml_free(xml);
}

static void walks_in_document_order(void **state)
{
    struct kl_xml *xml =
        parsed("<system><cpu i=\"1\"><pci i=\"2\"><pci i=\"3\"/></pci><pci i=\"4\"/></cpu><cpu i=\"5\"/></system>");
    int i = 0, e = KL_XML_ROOT;

    (void)state;
    while ((e = kl_xml_walk(xml, KL_XML_ROOT, e)) != KL_XML_NONE) assert_int_equal(kl_xml_int(xml, e, "i", 0), ++i);
    assert_int_equal(i, 5);
    e = kl_xml_find(xml, "cpu", "i", "1"); /* below one element only */
    i = 0;
    for (int at = e; (at = kl_xml_walk(xml, e, at)) != KL_XML_NONE;) i++;
    assert_int_equal(i, 3);
    assert_int_equal(kl_xml_walk(xml, kl_xml_find(xml, "cpu", "i", "5"), kl_xml_find(xml, "cpu", "i", "5")),
                     KL_XML_NONE);
    kl_xml_free(xml);
}

/* ---- trim and fuse ---- */

static const struct trim_case {
    const char *name, *text, *want, *nics; /* nics: with NICs trimmed, if that differs */
} trim_cases[] = {
    {"unused branches go",
     "<system><cpu i=\"0\"><pci/></cpu><cpu i=\"1\"><pci><pci><gpu keep=\"1\"/></pci><pci/></pci></cpu></system>",
     "<system>\n  <cpu i=\"1\">\n    <pci>\n      <pci>\n        <gpu/>\n      </pci>\n    </pci>\n  "
     "</cpu>\n</system>\n",
     NULL},
    {"below a mark nothing goes", "<system><cpu keep=\"1\"><pci/><pci><pci/></pci></cpu></system>",
     "<system>\n  <cpu>\n    <pci/>\n    <pci>\n      <pci/>\n    </pci>\n  </cpu>\n</system>\n", NULL},
    {"unwanted NETs go", "<system><cpu><nic><net i=\"0\" keep=\"0\"/><net i=\"1\" keep=\"1\"/></nic></cpu></system>",
     "<system>\n  <cpu>\n    <nic>\n      <net i=\"1\"/>\n    </nic>\n  </cpu>\n</system>\n", NULL},
    {"GPUs beside the kept one stay", "<system><cpu><pci><gpu i=\"0\"/><gpu i=\"1\" keep=\"1\"/></pci></cpu></system>",
     "<system>\n  <cpu>\n    <pci>\n      <gpu i=\"0\"/>\n      <gpu i=\"1\"/>\n    </pci>\n  </cpu>\n</system>\n",
     NULL},
    {"nothing kept", "<system><cpu><pci/></cpu></system>", "<system/>\n", NULL},
    {"cards without a NET",
     "<system><cpu><nic/><nic><net keep=\"0\"/></nic><pci><gpu keep=\"1\"/></pci></cpu></system>",
     "<system>\n  <cpu>\n    <nic/>\n    <nic/>\n    <pci>\n      <gpu/>\n    </pci>\n  </cpu>\n</system>\n",
     "<system>\n  <cpu>\n    <pci>\n      <gpu/>\n    </pci>\n  </cpu>\n</system>\n"},
    {"NETs without a mark", "<system><cpu><nic><net i=\"0\"/><net i=\"1\" keep=\"1\"/></nic></cpu></system>",
     "<system>\n  <cpu>\n    <nic>\n      <net i=\"0\"/>\n      <net i=\"1\"/>\n    </nic>\n  </cpu>\n</system>\n",
     "<system>\n  <cpu>\n    <nic>\n      <net i=\"1\"/>\n    </nic>\n  </cpu>\n</system>\n"},
};

static void expect_trimmed(const struct trim_case *c, bool nics, const char *want)
{
    struct kl_xml *xml = parsed(c->text);

    kl_xml_trim(xml, nics);
    char *text = written(xml);
    if (strcmp(text, want) != 0) fail_msg("case \"%s\": %s", c->name, text);
    free(text);
    kl_xml_free(xml);
}

static void trims_what_nobody_keeps(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, trim_cases)
    {
        expect_trimmed(c, false, c->want);
        expect_trimmed(c, true, c->nics ? c->nics : c->want);
    }
}

static const struct fuse_case {
    const char *name, *a, *b, *want;
} fuse_cases[] = {
    {"into nothing", "", "<system><cpu/></system>", "<system>\n  <cpu/>\n</system>\n"},
    {"of nothing", "<system/>", "", "<system/>\n"},
    {"two GPUs below one switch", "<system><cpu n=\"0\"><pci b=\"1\"><nic/><gpu r=\"0\"/></pci></cpu></system>",
     "<system><cpu n=\"0\"><pci b=\"1\"><nic/><gpu r=\"1\"/></pci></cpu></system>",
     "<system>\n  <cpu n=\"0\">\n    <pci b=\"1\">\n      <nic/>\n      <gpu r=\"0\"/>\n      <gpu r=\"1\"/>\n    "
     "</pci>\n"
     "  </cpu>\n</system>\n"},
    {"another attribute is another element", "<system><cpu n=\"0\" g=\"0\"/></system>",
     "<system><cpu n=\"0\" g=\"1\"/></system>",
     "<system>\n  <cpu n=\"0\" g=\"0\"/>\n  <cpu n=\"0\" g=\"1\"/>\n</system>\n"},
    {"one more attribute too", "<system><cpu n=\"0\"/></system>", "<system><cpu n=\"0\" g=\"1\"/></system>",
     "<system>\n  <cpu n=\"0\"/>\n  <cpu n=\"0\" g=\"1\"/>\n</system>\n"},
    {"or one less", "<system><cpu n=\"0\" g=\"1\"/></system>", "<system><cpu n=\"0\"/></system>",
     "<system>\n  <cpu n=\"0\" g=\"1\"/>\n  <cpu n=\"0\"/>\n</system>\n"},
    {"order of attributes does not count", "<system><cpu n=\"0\" g=\"1\"/></system>",
     "<system><cpu g=\"1\" n=\"0\"/></system>", "<system>\n  <cpu n=\"0\" g=\"1\"/>\n</system>\n"},
    {"attributes of the root do not count", "<system a=\"1\"/>", "<system b=\"2\"><cpu/></system>",
     "<system a=\"1\">\n  <cpu/>\n</system>\n"},
    {"hosts stay apart", "<system><cpu host_hash=\"0x1\" numaid=\"0\"/></system>",
     "<system><cpu host_hash=\"0x2\" numaid=\"0\"/></system>",
     "<system>\n  <cpu host_hash=\"0x1\" numaid=\"0\"/>\n  <cpu host_hash=\"0x2\" numaid=\"0\"/>\n</system>\n"},
};

static void fuses_what_is_equal(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, fuse_cases)
    {
        struct kl_xml *a = parsed(c->a), *b = parsed(c->b);

        expect_case(c->name, kl_xml_fuse(a, b, NULL) == ncclSuccess);
        char *text = written(a);
        if (strcmp(text, c->want) != 0) fail_msg("case \"%s\": %s", c->name, text);
        free(text);
        kl_xml_free(a);
        kl_xml_free(b);
    }
}

/* ---- files ---- */

static void files_are_read_and_missing_ones_reported(void **state)
{
    char path[] = "/tmp/kolo_xml_XXXXXX";
    struct kl_xml *xml;
    int fd = mkstemp(path);

    (void)state;
    assert_true(write(fd, "<system/>", 9) == 9);
    close(fd);
    assert_int_equal(kl_xml_load(path, kl_xml_topo_schema, &xml), ncclSuccess);
    assert_string_equal(kl_xml_name(xml), path);
    kl_xml_free(xml);
    unlink(path);
    assert_int_equal(kl_xml_load(path, kl_xml_topo_schema, &xml), ncclSystemError);
    assert_non_null(strstr(kl_error_text(), path));
    assert_int_equal(kl_xml_load("/tmp", kl_xml_topo_schema, &xml), ncclSystemError);
}

static void a_full_stream_is_reported(void **state)
{
    struct kl_xml *xml = parsed("<system/>");
    FILE *full = fopen("/dev/full", "w");

    (void)state;
    if (full) {
        assert_int_equal(kl_xml_write(xml, full), ncclSystemError);
        fclose(full);
    }
    kl_xml_free(xml);
}

static void copies_stand_alone(void **state)
{
    struct kl_xml *xml = parsed("<system a=\"1\"><cpu b=\"2\"><pci c=\"3\"/></cpu></system>"), *copy;

    (void)state;
    assert_int_equal(kl_xml_clone(xml, &copy), ncclSuccess);
    char *before = written(xml);
    kl_xml_free(xml);
    char *after = written(copy);
    assert_string_equal(before, after);
    free(before);
    free(after);
    kl_xml_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_well_formed),
        cmocka_unit_test(a_zero_byte_is_no_blank),
        cmocka_unit_test(attributes_keep_their_lines),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(attributes_are_bounded),
        cmocka_unit_test(numbers_are_read_as_c_does),
        cmocka_unit_test(words_match_as_prefixes),
        cmocka_unit_test(version_must_be_1),
        cmocka_unit_test(graphs_have_a_schema_of_their_own),
        cmocka_unit_test(attributes_can_be_set),
        cmocka_unit_test(elements_are_placed_by_bus_id),
        cmocka_unit_test(walks_in_document_order),
        cmocka_unit_test(trims_what_nobody_keeps),
        cmocka_unit_test(fuses_what_is_equal),
        cmocka_unit_test(files_are_read_and_missing_ones_reported),
        cmocka_unit_test(a_full_stream_is_reported),
        cmocka_unit_test(copies_stand_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
