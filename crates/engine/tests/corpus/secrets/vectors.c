static const struct testvec vecs[] = {
	{ .key = "\x60\x3d\xeb\x10\x15\xca\x71\xbe", .klen = 32, .ptext = "\x6b\xc1\xbe\xe2", },
	{ "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a" },
	"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
};
