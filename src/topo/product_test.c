/* SPDX-License-Identifier: Apache-2.0 */
/* Names of GPUs as drivers, nvidia-smi and nccl-tests write them. */
#include "topo/product.h"

#include "tests/kolo_test.h"

static const struct {
    const char *text;
    int sm;
    const char *product; /* NULL: not in the table */
} names[] = {
    {"NVIDIA H100 80GB HBM3", 90, "H100 SXM5"},
    {"NVIDIA A100-PCIE-40GB", 80, "A100 PCIe 40 GB"},
    {"A100-SXM4-40GB", 80, "A100 SXM4 40 GB"},
    {"Tesla V100-SXM2-16GB", 70, "V100 SXM2 16 GB"},
    {"NVIDIA RTX 6000 Ada Generation", 89, "RTX 6000 Ada"},
    {"NVIDIA RTX 5000 Ada Generation", 89, NULL},
    {"NVIDIA RTX 2000 Ada Generation", 89, NULL},
    {"Quadro RTX 5000", 75, NULL},
    {"Quadro RTX 6000", 75, NULL},
    {"NVIDIA RTX 5000", 75, NULL},
    {"NVIDIA GeForce RTX 5080", 120, NULL},
    {"NVIDIA GeForce RTX 3060 Ti", 86, NULL},
    {"NVIDIA GeForce RTX 4090 D", 89, "RTX 4090"},
    {"NVIDIA RTX A3000 Laptop GPU", 86, NULL},
    {"NVIDIA RTX A5500", 86, NULL},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, "RTX PRO 6000 Blackwell"},
    {"NVIDIA A16", 86, NULL},
    {"NVIDIA A30", 80, "A30"},
    {"NVIDIA A10G", 86, "A10G"},
    {"NVIDIA H20-3e", 90, NULL},
    {"NVIDIA L40S", 89, "L40S"},
    {"NVIDIA B200", 100, "B200"},
    {"NVIDIA GB200", 100, "GB200"},
    {"NVIDIA GB10", 121, "GB10"},
    {"NVIDIA GH200 480GB", 90, "GH200"},
    {"TITAN V", 70, NULL},
    {"Tesla T4", 75, "T4"},
    {"NVIDIA Graphics Device", 0, NULL},
    {"", 0, NULL},
};

static void names_mean_products_and_generations(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, names)
    {
        const struct kl_gpu_product *p = kl_gpu_product_like(c->text);
        int sm = kl_gpu_sm_like(c->text);

        if (sm != c->sm) fail_msg("\"%s\": sm %d instead of %d", c->text, sm, c->sm);
        if (c->product && (!p || strcmp(p->name, c->product)))
            fail_msg("\"%s\": %s instead of %s", c->text, p ? p->name : "nothing", c->product);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_mean_products_and_generations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
