//! The digits of a double, short and exact when read back: Grisu2, as in Redis.
//!
//! F. Loitsch, "Printing floating-point numbers quickly and accurately with integers" (2010). The algorithm scales the number
//! and the midpoints to its neighbours by a power of ten into 64-bit integers. It takes digits of the upper midpoint until
//! the rest is between the two. About one double in a thousand gets one digit more than needed, or not the nearest digits.
//! Clients compare texts, so the digits of Redis are worth more than the fewest.
//!
//! Not here: signs, zero, infinities, and the position of the point.

/// More digits than any double needs.
pub(super) const DIGITS_MAX: usize = 18;

/// The bit of the significand that is not stored, and the exponent of its last bit if the stored exponent is zero.
const HIDDEN: u64 = 1 << 52;
const EXPONENT_BIAS: i32 = 1075;
/// A scaled exponent not below this leaves an integer part of at most 32 bits.
const SCALED_MIN: i32 = -60;

/// Steps and the first exponent of `POWERS`.
const POWER_STEP: i32 = 8;
const POWER_FIRST: i32 = -348;

/// Every eighth power of ten from 10^-348: the first 64 bits, rounded.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d, 0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c, 0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57, 0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584, 0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053, 0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf, 0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000, 0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70, 0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db, 0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3, 0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5, 0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410, 0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9, 0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];

/// A 64-bit number times a power of two.
#[derive(Clone, Copy)]
struct Scaled {
    bits: u64,
    exponent: i32,
}

impl Scaled {
    /// With the highest bit set.
    fn normalized(bits: u64, exponent: i32) -> Self {
        let shift = bits.leading_zeros();
        Self { bits: bits << shift, exponent: exponent - shift.cast_signed() }
    }

    /// The upper half of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.bits) * u128::from(other.bits) + (1 << 63);
        Self { bits: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }
}

/// Digits of a positive, finite number, and the power of ten of the last one.
pub(super) fn digits(value: f64) -> ([u8; DIGITS_MAX], usize, i32) {
    let stored = value.to_bits();
    let (fraction, exponent) = (stored & (HIDDEN - 1), (stored >> 52) as i32);
    let (bits, exponent) = match exponent {
        0 => (fraction, 1 - EXPONENT_BIAS),
        _ => (fraction | HIDDEN, exponent - EXPONENT_BIAS),
    };
    let upper = Scaled::normalized(bits * 2 + 1, exponent - 1);
    // Below a power of two the distance between neighbours halves.
    let closer = if bits == HIDDEN { 2 } else { 1 };
    let lower = (bits << closer) - 1;
    let lower = lower << (exponent - closer - upper.exponent);
    let (power, ten) = power(upper.exponent);
    let middle = Scaled::normalized(bits, exponent).times(power);
    let lower = Scaled { bits: lower, exponent: upper.exponent }.times(power);
    let upper = upper.times(power);
    // The products are off by less than one: stay within them.
    let upper = Scaled { bits: upper.bits - 1, exponent: upper.exponent };
    generate(upper, upper.bits - (lower.bits + 1), upper.bits - middle.bits, -ten)
}

/// The smallest power of ten of the table that lifts this exponent far enough, and its exponent of ten.
fn power(exponent: i32) -> (Scaled, i32) {
    // The exponent of two of the first bit of 10^k, for |k| < 350.
    let of_ten = |ten: i32| ((ten * 217_706) >> 16) - 63;
    let enough = |ten: i32| exponent + of_ten(ten) + 64 >= SCALED_MIN;
    let wanted = SCALED_MIN - 1 - exponent;
    // 0.3 is just below the logarithm of two, so the search begins at or before the wanted power.
    let guess = (wanted * 3 / 10 - POWER_FIRST) / POWER_STEP - 1;
    let mut index = guess.clamp(0, 86);
    while !enough(POWER_FIRST + index * POWER_STEP) {
        index += 1;
    }
    let ten = POWER_FIRST + index * POWER_STEP;
    (Scaled { bits: POWERS[index.cast_unsigned() as usize], exponent: of_ten(ten) }, ten)
}

/// Digits of `upper` until the rest is at most `delta`. Then the last digit decreases while that is nearer to the
/// number itself, which is `distance` below `upper`.
fn generate(upper: Scaled, mut delta: u64, mut distance: u64, ten: i32) -> ([u8; DIGITS_MAX], usize, i32) {
    let mut out = ([0; DIGITS_MAX], 0, ten);
    let mut push = |digit: u64| {
        if digit > 0 || out.1 > 0 {
            out.0[out.1] = b'0' + digit as u8;
            out.1 += 1;
        }
    };
    let shift = -upper.exponent;
    let (mut whole, mut part) = (upper.bits >> shift, upper.bits & ((1 << shift) - 1));
    let (mut unit, mut places) = (1_000_000_000, 10);
    let unit = loop {
        if places > 0 {
            push(whole / unit);
            whole %= unit;
            places -= 1;
            let left = (whole << shift) + part;
            if left <= delta {
                part = left;
                break unit << shift;
            }
            unit /= 10;
        } else {
            part *= 10;
            delta *= 10;
            distance *= 10;
            push(part >> shift);
            part &= (1 << shift) - 1;
            out.2 -= 1;
            if part < delta {
                break 1 << shift;
            }
        }
    };
    out.2 += places;
    let last = &mut out.0[out.1 - 1];
    while part < distance
        && delta - part >= unit
        && (part + unit < distance || distance - part > part + unit - distance)
    {
        *last -= 1;
        part += unit;
    }
    out
}
