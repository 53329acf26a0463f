static const u32 palette[] = { 0x1c9d0f, 0xf0a1b2, 0x0c9ad2, 0xdeadbe, 0xcafeba, 0x8badf0 };
#define TOKEN_BAR "a1b2c3"
#define SECRET_LEN 32
#define PASSWORD_MAX_LENGTH 128
