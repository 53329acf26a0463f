static const char *password = "rV5-Hazel-69";
#define DEFAULT_PASSWORD "wQ2-Iris-45"
char password[64];
static const char *token = NULL;
password = getpass("Password: ");
if (strcmp(password, "fD7-Jasmine-92") == 0)
	token = strtok(line, " \t");
{ "password", required_argument, NULL, 'p' },
static const u8 key[16] = { 0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c };
.key = "\x2b\x7e\x15\x16\x28\xae\xd2\xa6\xab\xf7\x15\x88\x09\xcf\x4f\x3c",
.plaintext = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
printf("%s: wrong password for %s\n", argv[0], user);
