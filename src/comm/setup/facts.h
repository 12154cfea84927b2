/* SPDX-License-Identifier: Apache-2.0 */
/** facts.h - how operations on this host would be done, for questions beforehand (`kolo explain`). */
#ifndef KL_COMM_SETUP_FACTS_H
#define KL_COMM_SETUP_FACTS_H

#include "coll/select/model.h"

/** The facts that `nranks` processes on this machine would derive, with the settings in force, if each had as many CPUs as the others. Measures the machine. */
struct kl_select_facts kl_comm_facts_here(int nranks);

#endif
