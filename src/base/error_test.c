/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/log.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

/* The linker redirects error.c's calls of kl_log to this recorder: it sees every line, independent of NCCL_DEBUG. */
static struct {
    enum kl_log_level level;
    int line, calls;
    char file[256], text[2 * KL_ERROR_TEXT];
} logged;

void __wrap_kl_log(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt, ...);

void __wrap_kl_log(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    (void)subsys;
    logged.level = level;
    logged.line = line;
    logged.calls++;
    snprintf(logged.file, sizeof logged.file, "%s", file);
    va_start(ap, fmt);
    vsnprintf(logged.text, sizeof logged.text, fmt, ap);
    va_end(ap);
}

static int fresh(void **state)
{
    (void)state;
    memset(&logged, 0, sizeof logged);
    kl_error_adopt("");
    kl_error_quiet(0);
    return 0;
}

static void a_failure_is_kept_and_logged_once(void **state)
{
    (void)state;
    ncclResult_t rc = KL_FAIL(ncclInvalidArgument, "rank %d of %d, 100%%", 7, 4);
    int line = __LINE__ - 1;

    assert_int_equal(rc, ncclInvalidArgument);
    assert_string_equal(kl_error_text(), "rank 7 of 4, 100%");
    assert_int_equal(logged.calls, 1);
    assert_int_equal(logged.level, KL_LOG_WARN);
    assert_string_equal(logged.text, "rank 7 of 4, 100%");
    assert_string_equal(logged.file, __FILE__);
    assert_int_equal(logged.line, line);
}

static void a_percent_sign_in_an_argument_is_only_text(void **state)
{
    (void)state;
    KL_FAIL(ncclInvalidUsage, "no file %s", "%s%n");
    assert_string_equal(kl_error_text(), "no file %s%n");
    assert_string_equal(logged.text, "no file %s%n");
}

static void errno_is_appended_and_survives(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(KL_FAIL_ERRNO("opening %s", "/nowhere"), ncclSystemError);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(kl_error_text(), "opening /nowhere: No such file or directory");
    assert_string_equal(logged.text, "opening /nowhere: No such file or directory");
}

/* A text one byte over the limit loses that byte; with errno, the errno's text is cut first. */
static void long_texts_are_cut(void **state)
{
    char text[KL_ERROR_TEXT + 64];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[KL_ERROR_TEXT] = 0;
    KL_FAIL(ncclInternalError, "%s", text);
    text[KL_ERROR_TEXT] = 'x';
    assert_int_equal(strlen(kl_error_text()), KL_ERROR_TEXT - 1);
    assert_memory_equal(kl_error_text(), text, KL_ERROR_TEXT - 1);

    for (size_t len = KL_ERROR_TEXT - 20; len < sizeof text; len++) {
        text[len] = 0;
        errno = EPERM;
        KL_FAIL_ERRNO("%s", text);
        text[len] = 'x';
        assert_true(strlen(kl_error_text()) < KL_ERROR_TEXT);
        assert_memory_equal(kl_error_text(), text, len < KL_ERROR_TEXT ? len : KL_ERROR_TEXT - 1);
    }
}

static void an_adopted_text_is_kept_but_not_logged(void **state)
{
    (void)state;
    KL_FAIL(ncclSystemError, "own");
    kl_error_adopt("rank 3 died");
    assert_string_equal(kl_error_text(), "rank 3 died");
    assert_int_equal(logged.calls, 1);

    kl_error_adopt(kl_error_text()); /* same pointer: nothing to copy */
    assert_string_equal(kl_error_text(), "rank 3 died");
}

static void quiet_failures_are_logged_as_info(void **state)
{
    (void)state;
    assert_int_equal(kl_error_quiet(1), 0);
    KL_FAIL(ncclSystemError, "expected");
    assert_int_equal(logged.level, KL_LOG_INFO);
    assert_string_equal(kl_error_text(), "expected");

    assert_int_equal(kl_error_quiet(0), 1); /* the earlier state, to be restored */
    KL_FAIL(ncclSystemError, "not expected");
    assert_int_equal(logged.level, KL_LOG_WARN);
}

static void *fail_elsewhere(void *text)
{
    snprintf(text, KL_ERROR_TEXT, "%s", kl_error_text());
    KL_FAIL(ncclSystemError, "of the other thread");
    return NULL;
}

static void a_text_belongs_to_its_thread(void **state)
{
    char before[KL_ERROR_TEXT] = "?";
    pthread_t thread;

    (void)state;
    KL_FAIL(ncclSystemError, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, before), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(before, "");
    assert_string_equal(kl_error_text(), "of this thread");
}

static ncclResult_t pass_on(ncclResult_t rc, int *reached)
{
    KL_TRY(rc);
    *reached = 1;
    return ncclSuccess;
}

static ncclResult_t clean_up(ncclResult_t first, int *reached, int *cleaned)
{
    ncclResult_t rc;

    KL_TRY_OR(rc, out, first);
    *reached = 1;
out:
    *cleaned = 1;
    return rc;
}

static void codes_are_passed_on(void **state)
{
    static const ncclResult_t codes[] = {ncclSuccess, ncclSystemError, ncclInProgress};

    (void)state;
    FOR_EACH_CASE(code, codes)
    {
        int tried = 0, tried_or = 0, cleaned = 0;

        assert_int_equal(pass_on(*code, &tried), *code);
        assert_int_equal(tried, *code == ncclSuccess);
        assert_int_equal(clean_up(*code, &tried_or, &cleaned), *code);
        assert_int_equal(tried_or, *code == ncclSuccess);
        assert_int_equal(cleaned, 1);
    }
    assert_int_equal(logged.calls, 0);
}

static void every_code_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < ncclNumResults; i++) {
        assert_non_null(kl_result_text((ncclResult_t)i));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(kl_result_text((ncclResult_t)i), kl_result_text((ncclResult_t)k));
    }
    assert_string_equal(kl_result_text(ncclNumResults), "unknown result code");
    assert_string_equal(kl_result_text((ncclResult_t)-1), "unknown result code");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_failure_is_kept_and_logged_once, fresh),
        cmocka_unit_test_setup(a_percent_sign_in_an_argument_is_only_text, fresh),
        cmocka_unit_test_setup(errno_is_appended_and_survives, fresh),
        cmocka_unit_test_setup(long_texts_are_cut, fresh),
        cmocka_unit_test_setup(an_adopted_text_is_kept_but_not_logged, fresh),
        cmocka_unit_test_setup(quiet_failures_are_logged_as_info, fresh),
        cmocka_unit_test_setup(a_text_belongs_to_its_thread, fresh),
        cmocka_unit_test_setup(codes_are_passed_on, fresh),
        cmocka_unit_test_setup(every_code_has_a_text_of_its_own, fresh),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
