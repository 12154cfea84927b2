/* SPDX-License-Identifier: Apache-2.0 */
/** math_constants.h - numbers with names, in both precisions. */
#ifndef KOLO_CUDA_MATH_CONSTANTS_H
#define KOLO_CUDA_MATH_CONSTANTS_H

#define CUDART_INF_F            __builtin_inff()
#define CUDART_NAN_F            __builtin_nanf("0x3fffff")
#define CUDART_MIN_DENORM_F     0x1p-149F
#define CUDART_MAX_NORMAL_F     0x1.fffffep+127F
#define CUDART_NEG_ZERO_F       -0.0F
#define CUDART_ZERO_F           0.0F
#define CUDART_ONE_F            1.0F
#define CUDART_SQRT_HALF_F      0.707106781F
#define CUDART_SQRT_TWO_F       1.414213562F
#define CUDART_THIRD_F          0.333333333F
#define CUDART_PIO4_F           0.785398163F
#define CUDART_PIO2_F           1.570796327F
#define CUDART_3PIO4_F          2.356194490F
#define CUDART_2_OVER_PI_F      0.636619772F
#define CUDART_SQRT_2_OVER_PI_F 0.797884561F
#define CUDART_PI_F             3.141592654F
#define CUDART_L2E_F            1.442695041F
#define CUDART_L2T_F            3.321928094F
#define CUDART_LG2_F            0.301029996F
#define CUDART_LGE_F            0.434294482F
#define CUDART_LN2_F            0.693147181F
#define CUDART_LNT_F            2.302585093F

#define CUDART_INF        __builtin_inf()
#define CUDART_NAN        (-__builtin_nan(""))
#define CUDART_MIN_DENORM 0x1p-1074
#define CUDART_NEG_ZERO   -0.0
#define CUDART_ZERO       0.0
#define CUDART_ONE        1.0
#define CUDART_SQRT_TWO   1.4142135623730951
#define CUDART_SQRT_HALF  0.70710678118654757
#define CUDART_THIRD      0.33333333333333333
#define CUDART_TWOTHIRD   0.66666666666666667
#define CUDART_PIO4       0.78539816339744828
#define CUDART_PIO2       1.5707963267948966
#define CUDART_3PIO4      2.3561944901923448
#define CUDART_2_OVER_PI  0.63661977236758138
#define CUDART_PI         3.1415926535897931
#define CUDART_SQRT_2PI   2.5066282746310007
#define CUDART_SQRT_2OPI  0.79788456080286536
#define CUDART_L2E        1.4426950408889634
#define CUDART_L2T        3.3219280948873622
#define CUDART_LG2        0.30102999566398120
#define CUDART_LGE        0.43429448190325182
#define CUDART_LN2        0.69314718055994529
#define CUDART_LNT        2.3025850929940459

#endif
