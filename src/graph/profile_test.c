/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/profile.h"

#include "tests/kolo_test.h"
#include "topo/types.h"

#include <string.h>

static void words_are_added_to_what_is_known(void **state)
{
    struct kl_profile p = kl_profile_known(KL_VENDOR_AMD);
    const uint32_t cma_ns = p.cma_ns;

    (void)state;
    assert_int_equal(kl_profile_parse(&p, "line=147,huge=1"), ncclSuccess);
    assert_int_equal(p.line_ns, 147);
    assert_int_equal(p.huge_pages, 1);
    assert_int_equal(p.cma_ns, cma_ns);
    assert_int_equal(p.source, KL_PROFILE_GIVEN);
}

static void other_texts_are_refused_and_change_nothing(void **state)
{
    static const char *const texts[] = {"line", "line=", "line=x", "lines=3", "line=3;cma=4", "line=3,nothing=4", "=3"};

    (void)state;
    FOR_EACH_CASE(text, texts)
    {
        const struct kl_profile before = {.line_ns = 1};
        struct kl_profile p = before;
        assert_int_equal(kl_profile_parse(&p, *text), ncclInvalidArgument);
        assert_non_null(strstr(kl_error_text(), "KOLO_PROFILE"));
        assert_memory_equal(&p, &before, sizeof p);
    }
}

static void what_is_logged_can_be_given(void **state)
{
    struct kl_profile before = kl_profile_known(KL_VENDOR_INTEL), after = {0};
    char buffer[256];
    struct kl_text text = kl_text_in(buffer, sizeof buffer);

    (void)state;
    kl_profile_text(&before, &text);
    *strchr(buffer, ' ') = 0;
    assert_int_equal(kl_profile_parse(&after, buffer), ncclSuccess);
    before.source = after.source;
    assert_memory_equal(&before, &after, sizeof before);
}

static void what_was_not_measured_is_completed(void **state)
{
    const struct kl_profile known = kl_profile_known(KL_VENDOR_AMD);
    struct kl_profile p = {.copy_kib_ns = 7};

    (void)state;
    kl_profile_complete(&p, &known);
    assert_int_equal(p.copy_kib_ns, 7);
    assert_int_equal(p.line_ns, known.line_ns);
    assert_int_equal(p.last_kib, known.last_kib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_added_to_what_is_known),
        cmocka_unit_test(other_texts_are_refused_and_change_nothing),
        cmocka_unit_test(what_is_logged_can_be_given),
        cmocka_unit_test(what_was_not_measured_is_completed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
