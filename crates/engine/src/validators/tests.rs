//! Known-good and known-bad values of every validator: published test numbers, or made-up ones whose check
//! digits an independent implementation agrees with.

use super::keys::tests::KEYS;
use super::*;

/// A validator's name, values it accepts and values it refuses.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const NUMBERS: &[Case] = &[
    ("luhn", &["79927398713", "4111 1111 1111 1111"], &["79927398710", "00000000", "1234"]),
    (
        "imei",
        &["490154203237518", "35-209900-176148-1"],
        &["490154203237519", "000000000000000", "49015420323751"],
    ),
    ("iccid", &["8991101200003204514"], &["8991101200003204515", "9091101200003204514"]),
    ("us_npi", &["1234567893", "1245319599"], &["1234567890", "3234567893"]),
    ("ca_sin", &["512617911", "941-453-086"], &["512617912", "812617918"]),
    ("fr_siren", &["756898284"], &["756898285", "000000000"]),
    ("fr_siret", &["20069836380395"], &["20069836380396"]),
    ("it_iva", &["28705560671"], &["28705560672", "11775481507"]),
    ("gr_amka", &["13094511428"], &["13094511429", "32094511424"]),
    ("il_id", &["866769235"], &["866769236"]),
    ("sa_id", &["1090538743"], &["1090538744", "9090538746"]),
    ("ae_id", &["784-1990-7654321-6"], &["784-1990-7654321-7", "785199076543215"]),
    ("za_id", &["1407269043077"], &["1407269043078", "1413269043071"]),
    ("do_cedula", &["12347307055"], &["12347307056"]),
    ("in_aadhaar", &["6910 8570 7015"], &["6910 8570 7016", "222222222222"]),
    ("de_idnr", &["12067843492"], &["12067843493", "01234567890"]),
    ("de_ust", &["960409891"], &["960409892"]),
    ("hr_oib", &["54394783992"], &["54394783993"]),
    ("cn_ric", &["310115201506055863", "11010519491231002X"], &["310115201506055864", "310115201513055863"]),
    (
        "iban",
        &["GB82 WEST 1234 5698 7654 32", "NO9386011117947", "fr1420041010050500013m02606"],
        &["GB82 WEST 1234 5698 7654 33", "GB82WEST123456987654", "ZZ82WEST12345698765432", "GB"],
    ),
    ("fr_nir", &["299121308456946", "130012A01318131"], &["299121308456947", "999121308456946"]),
    ("be_nn", &["08071103150", "96.09.16-155.86"], &["96.09.16-155.87", "96991615586"]),
    ("gb_vat", &["342883245", "311046179"], &["342883246", "000000000"]),
    ("us_aba", &["021000021", "122105155", "131588093"], &["021000022", "111111111"]),
    ("mx_clabe", &["032180000118359719"], &["032180000118359718"]),
    ("ar_cbu", &["3094733503571706625046"], &["3094733503571706625047"]),
    ("ean13", &["5848642535499"], &["5848642535498"]),
    ("gb_nhs", &["804 016 3218"], &["804 016 3219"]),
    ("nl_bsn", &["644050585"], &["644050586"]),
    ("pt_nif", &["782906540"], &["782906541", "082906540"]),
    ("pl_pesel", &["80072408218"], &["80072408219", "80333408218"]),
    ("pl_nip", &["5876218672"], &["5876218673"]),
    ("ch_ahv", &["756.7236.1913.75"], &["756.7236.1913.76", "757.7236.1913.75"]),
    ("gr_afm", &["051056333"], &["051056334"]),
    ("ro_cnp", &["1110926015409"], &["1110926015408", "0110926015409"]),
    ("au_tfn", &["121982148"], &["121982149"]),
    ("au_medicare", &["2123 45670 1"], &["2123 45671 1", "9123 45670 1"]),
    ("jp_my_number", &["660480515129"], &["660480515128"]),
    ("th_id", &["1525146450939"], &["1525146450938"]),
    ("ar_cuit", &["27-59580955-5"], &["27-59580955-6", "97595809555"]),
    ("br_cpf", &["826.173.844-20"], &["826.173.844-21", "111.111.111-11"]),
    ("br_cnpj", &["86.324.966/8382-92"], &["86.324.966/8382-93"]),
    ("ru_inn", &["4871072946", "500100732259"], &["4871072947", "500100732258"]),
    ("vin", &["1M8GDM9AXKP042788", "1HGCM82633A004352"], &["1M8GDM9A0KP042788", "1M8GDM9AXKPO42788"]),
];

const PERSONS: &[Case] = &[
    ("us_ssn", &["731-42-6508", "314529076"], &["666-12-3456", "000-12-3456", "314-00-9076", "078-05-1120"]),
    ("us_itin", &["972-98-9612"], &["972-49-9612", "872-98-9612"]),
    ("us_ein", &["86-6992177"], &["00-6992177", "12-3456789"]),
    ("us_dea", &["AB1234563"], &["AB1234564", "1B1234563"]),
    ("us_mbi", &["1EG4-TE5-MK73"], &["0EG4-TE5-MK73", "1SG4-TE5-MK73"]),
    ("mx_curp", &["YEKN631107HDFLCK82"], &["YEKN631107HDFLCK83", "YEKN631107HZZLCK82"]),
    ("mx_rfc", &["UETJ130213HF9"], &["UETJ130213HF8", "UETJ131313HF9"]),
    ("cl_rut", &["69.791.203-7", "81.039.837-k"], &["69.791.203-8", "1.111.111-4"]),
    ("ec_ci", &["1953170667"], &["1953170668", "9953170667"]),
    ("gb_nino", &["JG 10 37 59 A"], &["GB 10 37 59 A", "QQ123456C", "JG103759E"]),
    ("gb_utr", &["9612585810"], &["9612585811"]),
    ("ie_pps", &["5706921BW"], &["5706921CW", "5706921CX"]),
    ("es_dni", &["05321233E", "X2482300W"], &["05321233F", "12345678Z"]),
    ("es_cif", &["B62281969", "P1327719I"], &["B62281968", "Z62281969"]),
    ("it_codice_fiscale", &["BZBBMG57L01H501Q"], &["BZBBMG57L01H501R", "BZBBMG57L35H501Q"]),
    ("at_vnr", &["2509070553"], &["2519070553", "2509990553"]),
    ("fi_hetu", &["121245-4031", "300312A9683"], &["121245-4032", "321245-4031"]),
    ("se_pnr", &["510110-4965", "19680824-3049"], &["510110-4966", "511310-4963"]),
    ("no_fnr", &["21033039961"], &["21033039962"]),
    ("dk_cpr", &["130945-1142"], &["321345-1142", "130945-0000"]),
    ("ee_lt_id", &["53005112272"], &["53005112273", "93005112272"]),
    ("bg_egn", &["3804243235"], &["3804243236"]),
    ("cz_rc", &["700920/7117"], &["700920/7118", "701320/7117"]),
    ("ru_snils", &["112-233-445 95"], &["112-233-445 96"]),
    ("tr_tckn", &["83633777464"], &["83633777465", "03633777464"]),
    ("de_id_card", &["L01X00T471"], &["L01X00T472", "A01X00T471"]),
    ("de_kvnr", &["A123456780"], &["A123456781", "1123456780"]),
    ("in_pan", &["KAGHX8931S"], &["KAGXX8931S", "KAGHX0000S"]),
    ("in_gstin", &["29ZWEPT6352V1ZK"], &["29ZWEPT6352V1ZL", "99XXXXX0000X1ZK"]),
    ("cn_uscc", &["91449717406008145W"], &["91449717406008145X"]),
    ("hk_hkid", &["A123456(3)"], &["A123456(4)", "A12345(3)"]),
    ("tw_id", &["A123456789"], &["A123456788", "A323456787"]),
    ("kr_rrn", &["000813-3071455"], &["000813-3071456", "001313-3071455"]),
    ("sg_nric", &["S1234567D"], &["S1234567E", "A1234567D"]),
    ("my_nric", &["720331-74-0887"], &["721331-74-0887", "720331-00-0887"]),
    ("au_abn", &["20 680 480 370"], &["20 680 480 371"]),
    ("nz_ird", &["098-123-814"], &["098-123-815", "198-123-814"]),
];

const OTHERS: &[Case] = &[
    (
        "card_issuer",
        &["4111111111111112", "2223000048400011", "6304273733981"],
        &["9111111111111111", "411111111111"],
    ),
    (
        "card",
        &["5500 0055 5555 5559", "378282246310005", "2223000048400011", "3519833257665853"],
        &["4111 1111 1111 1112", "3675 3600 8700 3600", "4"],
    ),
    (
        "card_track",
        &[";4111111111111111=27091010000", "%B4111111111111111^DOE/ANN^2709101"],
        &[";4111111111111111=2713", ";4111111111111112=2709", "%B4111111111111111^DOE/ANN"],
    ),
    (
        "btc_address",
        &["1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"],
        &["1BoatSLRHtKNngkdXEeobR76b53LETtpyU", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mda", "1"],
    ),
    (
        "btc_wif",
        &["5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"],
        &["5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"],
    ),
    (
        "bip32_xprv",
        &[
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
        ],
        &[
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHj",
        ],
    ),
    ("bech32", &["A12UEL5L", "a1lqfn3a"], &["A12UEL5M", "1nwldj5", "a12UEL5L"]),
    (
        "eth_address",
        &["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359"],
        &["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "0x0000000000000000000000000000000000000000"],
    ),
    (
        "ipv4",
        &["85.14.202.77", "10.0.0.1"],
        &["127.0.0.1", "192.0.2.1", "255.255.255.0", "300.1.2.3", "1.2.3", "2.5.4.17"],
    ),
    ("ipv6", &["2a01:4f8:c17:b0f:91:7ad2:33c4:1e"], &["::1", "2001:db8::1:2:3", "fe80::", "12:34:56"]),
    ("mac", &["3c:22:fb:9a:41:0e"], &["ff:ff:ff:ff:ff:ff", "00:11:22:33:44:55", "01:23:45:67:89:ab"]),
    (
        "email",
        &["ann.lee@corp-mail.org", "o'neil+x@a.b.co.uk"],
        &[
            "a@example.com",
            "logo@2x.png",
            "git@github.com",
            ".a@corp.org",
            "a..b@corp.org",
            "a@corp",
            "a@-corp.org",
            "",
        ],
    ),
    (
        "phone_international",
        &[
            "+44 7700 921916",
            "+41 (0)44 628 35 17",
            "0049 30 901820",
            "+(370) 61234567",
            "011 81 90 4821 9034",
            "+39 06 6982 1482",
            "+1 612 734 8890 ext. 12",
            "+33\u{a0}1\u{a0}48\u{a0}71\u{a0}25\u{a0}30",
        ],
        &[
            "+1 503 111 4416",
            "+1 213 555 0123",
            "+0 123 456 789",
            "+4411111111111",
            "+33 48 71 25 30",
            "+7 112 345 67 89",
            "+210 123 4567",
            "+12",
        ],
    ),
    (
        "phone_us",
        &["503-782-4416", "1 (612) 734-8890", "612-734-8890x214"],
        &["503-111-4416", "213-555-0123", "123-456-7890"],
    ),
    (
        "phone_local",
        &["0471 28 63 95", "482 7716", "(09) 315 8906"],
        &["1111111", "12 34", "12345678", "20 11 2023", "2023-11-20", "02110-1301", "213-555-0123"],
    ),
    (
        "person_known",
        &["Ann Moreau", "Jürgen", "lena andersson", "Okonkwo", "Maria van der Berg"],
        &["on the", "README", "string", "lena okonkwo", ""],
    ),
    (
        "seed_phrase",
        &["orbit walnut crisp velvet anchor mango lunar copper tissue banner glide fossil"],
        &["test test test test test test test test test test test junk", ""],
    ),
    ("mostly_mixed", &["abc1"], &["abcd", "1234"]),
    ("mixed", &["abc1"], &["abcd", "1234", ""]),
    (
        "literal",
        &["kD83jf02", "#br1ar9"],
        &["${PW}", "{{ pw }}", "get_pw()", "NULL", "#login-field", "0x018C", "<pw>"],
    ),
    ("anonymous_password", &["busy@box", "v1olet@1"], &["busybox@", "kim7@"]),
    ("unnamed", &["silver_birch", "v1olet"], &["user_password", "MySecret"]),
    (
        "password_literal",
        &["v1olet$T1de", "silverbirch", "w1llow"],
        &[
            "user_password",
            "Password:",
            "auth.password",
            "shop/orders/edit",
            "enter the new password",
            "$pw",
            "root",
        ],
    ),
    (
        "key_literal",
        &["7c1e90b4f28d3a65e0b97d41c8f2a360"],
        &["my-application-secret-name", "abcdefghijkl", "${KEY12}", "8c1e90b4-f28d-4a65-a0b9-7d41c8f2a360"],
    ),
];

const TOKENS: &[Case] = &[
    (
        "crc32_base62",
        &["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", "npm_000000"],
        &["no-separator", "ghp_abc"],
    ),
    (
        "gitlab_token",
        &[
            "glpat-zEBTMj0x0vAdSnnzjv-cPG86MQp1OjJzOWMQ.01.101ahzi2a",
            "glrt-JY6hqYAA2UcH1fV_LMrQMG86MQp1OjJzOWMQ.01.101pmoctq",
            "glpat-8wkGIQNJhCbbUxe-rbLb",
        ],
        &[
            "glpat-zEBTMj0x0vAdSnnzjv-cPG86MQp1OjJzOWMQ.01.101ahzi2b",
            "glpat-zEaTMj0x0vAdSnnzjv-cPG86MQp1OjJzOWMQ.01.101ahzi2a",
            "glpat-zEBTMj0x0vAdSnnzjv-cPG86MQp1OjJzOWMQ.02.101ahzi2a",
        ],
    ),
    (
        "grafana_token",
        &[
            "glsa_G1ylvuhfJXqIEnomef2mSJ5CMTIeg1ZT_94d5cb42",
            "glc_eyJvIjoiNyIsIm4iOiJtYWRlLXVwLWtleSIsImsiOiJiZDM2YmU1NGQ5MTYxODkzNzZkMzE0ZWFjOGM4ODlmOTFiNDU3MWEwIiwibSI6eyJyIjoiZXUifX0=",
            "eyJrIjoieHV1Ti1SOVo3NGNPMU5mRi1XZkFsZktiaHo4NGtuaG4iLCJuIjoibWFkZSIsImlkIjoxfQ==",
        ],
        &[
            "glsa_G1ylvuhfJXqIEnomef2mSJ5CMTIeg1ZT_94d5cb4a",
            "glsa_G1alvuhfJXqIEnomef2mSJ5CMTIeg1ZT_94d5cb42",
            "eyJrIjoiYTZjMTk3YjEtMzQ4Yi00NTI5LThhMmQtNmUyMGRlOTkwMGRlIiwidCI6IjBmM2QxYzZhLTliNTItNGUwNy04YTZkLTJjNDFiN2U5NWYzMCIsImMiOjV9",
            "glc_eyJub3RoaW5nIjoxfQ",
            "glsa_x",
        ],
    ),
    (
        "aws_key_id",
        &["AKIAYOSFODNN4IRWU4IT", "ASIAQAAAAAADQFRGGUN3", "AKIAIOSFODNN7EXAMPLE"],
        &["AKIA7I6HAQQAAT6B3YQ7", "AKIA0189EXAMPLE01890", "AKIA"],
    ),
    (
        "azure_key",
        &[
            "DX6hCr5bwv1uHkH8geeQsH0OpnjSsacYJUyHFwTXfOpa7NDAapMAD8t7JcLUwecGswI9Fqrsdx3dY/l5GuLaIg==",
            "PUI1xdYWKSomBgz13jurgMVh9/uTtruZan2BRJnW4ho=",
        ],
        &[
            "eJ9qS4pGSXTfMASXfBIJBLwkAheo4BuCNK0Vx2wqG/OqYkh14H2IsdHEZjHg1KZt2EBI3ebf",
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
            "!",
        ],
    ),
    (
        "discord_token",
        &[
            "NDcyOTM5NzI2MzIxODU3MDg3.UOkxxg.R_hewbn_rnr8v8THp4ZkgYhm-N4",
            "NTM2NDE1ODMyODE0MzY0NTgx.-L_gjw.17SoT-wURqwaJSNc7ciyDDbp05Y",
        ],
        &["NotANumberAtAllHereNoNo.XMgwwa.GQ6UR2v_o_r_cSIK12QKu3NwZPv", ""],
    ),
    (
        "mapbox_token",
        &[
            "sk.eyJ1IjoibWFkZXVwIiwiYSI6ImNsOWY4ZjlhYWQ5NDBlODcwNWRiYjhmNiJ9.lh6jsdIgRcspp_hXD62Euw",
            "tk.eyJ1IjoibWFkZXVwIiwiYSI6ImNsOWY5NWY0NjAxNmUxYjM0YzE0NWM3NCJ9.pZ682QEMc7_XJn5nyfuI2Q",
        ],
        &["sk.eyJ1IjoibWFkZXVwIn0.x", "sk.eyJ1Ijoi", "s"],
    ),
    (
        "onepassword_token",
        &[
            "ops_eyJzaWduSW5BZGRyZXNzIjoibWFkZS11cC4xcGFzc3dvcmQuaW52YWxpZCIsInVzZXJBdXRoIjp7Im1ldGhvZCI6IlNSUGctNDA5NiIsIml0ZXJhdGlvbnMiOjY1MDAwMCwic2FsdCI6IjBSTnVBUndJWU1jZ0NldklvODVDMFEifSwiZW1haWwiOiJtQDFwYXNzd29yZHNlcnZpY2VhY2NvdW50cy5pbnZhbGlkIiwic3JwWCI6Ijk5ZWY0MWEyZThkMzJjOGFlNGFiMTYxMTBiOGNmZmZkYmE2MzgyYjYxMjJkYmM3YjM0OGE5MWM0YmM1MjUzNzgiLCJtdWsiOnsiYWxnIjoiQTI1NkdDTSIsImV4dCI6dHJ1ZSwiayI6Ik9qQjhrMl93a0dLOHFOLU95REptc2hnMnlaMm5fcVZPcEt0VVZ2ZWtiVEEiLCJrdHkiOiJvY3QifSwic2VjcmV0S2V5IjoiQTMtTUFERVVQLTgwODA1QUM4QTQzNjQxNUEifQ",
        ],
        &["ops_eyJzaWduSW5BZGRyZXNzIjoiYSJ9", "ops_eyJi4orAJRWoGU5uXYu3to"],
    ),
    (
        "pypi_token",
        &[
            "pypi-AgEIcHlwaS5vcmcCJDBmM2QxYzZhLTliNTItNGUwNy04YTZkLTJjNDFiN2U5NWYzMAACKlszXQAGyznwKFirJdRDhvRySk1-PbLxGHqWrhFHSiz3AuhLlWtuhQ",
            "pypi-AgENdGVzdC5weXBpLm9yZwIkMGYzZDFjNmEtOWI1Mi00ZTA3LThhNmQtMmM0MWI3ZTk1ZjMwAAIqWzNdAAaGnWywZuDSzRqvcM7cilt5feph5CtiY96NbZzAQgb3mE7y",
        ],
        &["pypi-AgEIcHlwaS5vcmd", "pypi-AgEIZXYgaWwub3ICJDBmMw", "pypi-", "x"],
    ),
    (
        "sentry_token",
        &[
            "sntrys_eyJpYXQiOiAxNzAwMDAwMDAwLjUsICJ1cmwiOiAiaHR0cHM6Ly9zZW50cnkuaW52YWxpZCIsICJyZWdpb25fdXJsIjogImh0dHBzOi8vZXUuc2VudHJ5LmludmFsaWQiLCAib3JnIjogIm1hZGUtdXAifQ==_SHCC3nGukQWTE2NU6PhfqESZ/9wcWVslH3Ky6CQqDH4",
            "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",
        ],
        &["sntrys_eyJpYXQiOjE2MBplsJwtsoVy1mfpf9qo7E", "sntrys_"],
    ),
    (
        "vault_token",
        &[
            "hvs.CAESIJNLV1vyF-HoqUHFyiMsVG2yBnmWGYKibjszuKOWCfDuGh4KHGh2cy7uexuc_2zoBRcHDrlbfHdHZ4kT3jGCXIQ",
            "hvs.f4wRlIBMOZthC9OxKPaVPo2-",
        ],
        &[],
    ),
    (
        "age_key",
        &[
            "AGE-SECRET-KEY-18W27RHANPZ56NJUN7WMMS23D6J8UKDJ8T8EY6RDA3WY3DPFSTK3S6A0PJ5",
            "AGE-SECRET-KEY-1WW62S7H38CWCK7NJHD3TJ6VHWCV9U2CL5DLNKJXWE2QLG597GD2QH985ZJ",
        ],
        &[
            "AGE-SECRET-KEY-18W27RHANPZ56NJAN7WMMS23D6J8UKDJ8T8EY6RDA3WY3DPFSTK3S6A0PJ5",
            "age-secret-key-18w27rhanpz56njun7wmms23d6j8ukdj8t8ey6rda3wy3dpfstk3s6a0pj5",
            "AGE-SECRET-KEY-18W27RHANPZ56NJUN7WMMS23D6J8UKDJ8T8EY6RDA3WY3DPFSTK3S6A0PJ",
            "AGE-SECRET-KEX-18W27RHANPZ56NJUN7WMMS23D6J8UKDJ8T8EY6RDA3WY3DPFSTK3S6A0PJ5",
        ],
    ),
    (
        "nostr_key",
        &["nsec1vasn8xfd8glj9sskgzax9pa0kwy3duyl05ekhwyujcmu4ekftlfqemazrl"],
        &["nsec1vasn8xfd8glj9sskgzax9pa0kwy3duyl05ekhwyujcmu4ekftlfqemazrq", "nsec1", ""],
    ),
    (
        "stellar_seed",
        &[
            "SB3IJZRSTN3PUDK3EE37H25XFG74U4MY5T5S34MAVEWQSHAFFN427JIQ",
            "SDIWWFHPNSQRMJCPTYAWCVBCQVTTHZWJ7EHKGNTRIGFWPU6DEBNPAWEP",
        ],
        &[
            "SB3IJZRSTN3PUDK3EE37H25XFG74U4MY5T5S34MAVEWQSHAFFN427JIA",
            "GCYXT3AOEG653N4ZY67SNG7QNAPRQHREJMWP2LLIEXWDLYMPKHCX72CD",
            "S",
            "",
        ],
    ),
    ("base64_user_password", &["ZGVwbG95OktkODNuZjAycQ=="], &["cmVhbG0=", "OnB3", "%%%"]),
    ("base64_text", &["S2Q4M25mMDJx"], &["AAECAwQFBgc=", "S2Q=", "%%"]),
    ("base64_32_bytes", &["yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="], &["yAnz5TF+lXXJ", ""]),
];

/// Values that python-stdnum agrees with, where it knows the format.
const FURTHER: &[Case] = &[
    ("bic", &["KQBNDEFFXXX", "KQBNFRPP"], &["KQBNXYFF", "KQBNDE", "kq"]),
    ("by_unp", &["176520738", "158558382", "178269848"], &["176520739", "158558383"]),
    ("ca_bc_phn", &["9465 322 171", "9245 586 864", "9965 381 721"], &["9465 322 172", "9245 586 865"]),
    ("ca_bn", &["460020514RT0001", "105214878RC0001"], &["460020515RT0001"]),
    ("ca_ohip", &["6881-969-163", "2107-771-541", "7063-030-626"], &["6881-969-164", "2107-771-542"]),
    (
        "ch_uid",
        &["CHE-327.686.880", "CHE-254.269.774", "CHE-885.291.985"],
        &["CHE-327.686.881", "CHE-254.269.775"],
    ),
    ("co_nit", &["334.087.595-6", "484.676.542-8", "793.464.261-4"], &["334.087.595-7", "484.676.542-9"]),
    ("de_rvnr", &["65101186L517", "65100696L436", "65150790S641"], &["65101186L518", "65100696L437"]),
    (
        "dogecoin_address",
        &["DEonMyk5hFxLk1vaRjWDVa7bhRufiKbTgN", "D5rQA6Q8DS84EGQMjLrkckbg9NQydtZhHw"],
        &["DEonMyk5hFxLk1vaRjWDVa7bhRufiKbTga", "1"],
    ),
    (
        "es_ccc",
        &["2100-8154-91-3089133520", "2100-6365-47-6282475805", "2100-5061-32-0516731734"],
        &["2100-8154-91-3089133521", "2100-6365-47-6282475806"],
    ),
    (
        "eu_vat",
        &[
            "ATU47179119",
            "BE0027805742",
            "BG0431936224",
            "BG055970759",
            "CY10286120I",
            "CZ00249386",
            "DK25360605",
            "EE903028202",
            "FI41154145",
            "FR41202201489",
            "LT080594814",
            "LU23893559",
            "LV43544129858",
            "MT44338546",
            "NL359199288B01",
            "RO2157479",
            "SE824128034901",
            "SI57063443",
            "SK8029916961",
            "HU38216312",
            "PL5995334769",
            "PT221824243",
            "DE600228647",
            "ESB14437313",
            "IT27110200014",
            "HR56164722413",
            "EL359957127",
            "GB238238063",
        ],
        &[
            "ATU47179110",
            "BE0027805743",
            "CY10286121I",
            "DK25360606",
            "EE903028203",
            "FI41154146",
            "FR41202201480",
            "LU23893550",
            "LV43544129859",
            "MT44338547",
            "NL359199288B00",
            "RO2157470",
            "SE824128034902",
            "SI57063444",
            "SK8029916962",
            "HU38216313",
            "PL5995334760",
            "PT221824244",
            "DE600228648",
            "ESB14437314",
            "IT27110200015",
            "HR56164722414",
            "EL359957128",
            "GB238238064",
        ],
    ),
    (
        "fr_nif",
        &["20 24 039 129 322", "24 74 224 477 291", "28 23 923 622 163"],
        &["20 24 039 129 323", "24 74 224 477 292"],
    ),
    (
        "gb_driving_licence",
        &["MORGA657054SM9IJ", "LEE99854121A99XK"],
        &["MORGA697054SM9IJ", "M9RGA657054SM9IJ"],
    ),
    ("hu_tax", &["38495331-1-42", "81188228-1-42", "62467805-1-42"], &["38495331-6-42", "81188228-6-42"]),
    ("id_nik", &["3174055208890003", "3273121407750002"], &["3174057213890003", "1074055208890003"]),
    ("imsi", &["262018482190347", "310150482190347"], &["162018482190347", "262222222222222", "26201848219"]),
    ("in_epic", &["UIL8175291", "XJL1155902", "AQK1267988"], &["UIL8175292", "XJL1155903"]),
    ("is_kt", &["180960-9889", "160482-8930", "110255-1790"], &["180960-9881", "160482-8931"]),
    ("kr_brn", &["415-18-74640", "548-62-96874", "209-34-89970"], &["415-18-74641", "548-62-96875"]),
    (
        "litecoin_address",
        &["LhyXC9BiSCxGU1sBPmPEvPC9TXavXXts3J", "LZHh53KZt9Fy8bKBz4mCHpHiYBHVFeNLim"],
        &["LhyXC9BiSCxGU1sBPmPEvPC9TXavXXts3a", "1"],
    ),
    ("lv_pk", &["280293-19678", "191250-13519", "161159-10941"], &["280293-19679", "191250-13510"]),
    ("meid", &["A8586AE42AB1050", "ABA60B37FB14EE7"], &["A8586AE42AB1051", "18586AE42AB1050"]),
    ("mx_rfc_company", &["JKL880222N52", "XWS6207164S7", "NWX540617RG5"], &["JKL880222N53", "XWS6207164S8"]),
    ("nz_nhi", &["QCK4009", "XCU4801"], &["QCK4000", "IAA1234"]),
    ("pe_cui", &["75911839-7", "55754998-1", "80460707-8"], &["75911839-8", "55754998-2"]),
    ("pe_ruc", &["20361455844", "20011209051", "20176688140"], &["20361455845", "20011209052"]),
    (
        "person_name",
        &["Ann Moreau", "Lindqvist", "Jean-Luc"],
        &["Todo", "Required", "String", "None", "ANN2"],
    ),
    ("person_name_first", &["Lyon, France", "Linz"], &["Unknown", "String", "None, Required"]),
    ("pk_cnic", &["35202-4821903-7"], &["95202-4821903-7", "35202-482190-7"]),
    ("pl_regon", &["542735495", "369529223", "195408451"], &["542735496", "369529224"]),
    ("pt_cc", &["55246533 3 ZZ7", "36927638 8 ZZ9", "14066264 9 ZZ1"], &["55246533 3 ZZ8", "36927638 8 ZZ0"]),
    ("si_emso", &["1709972500456", "1710966500795", "1302959500703"], &["1709972500457", "1710966500796"]),
    (
        "tron_address",
        &["TAiUv9PoCvDZzrCkiEUeM3W2rqB5y4w15Y", "TNYHXgaSsuCGb1eLs4AL8ZsUwSJp8WZE3u"],
        &["TAiUv9PoCvDZzrCkiEUeM3W2rqB5y4w15a", "1"],
    ),
    ("ua_rnokpp", &["2642556213", "2876175339", "2116493812"], &["2642556214", "2876175330"]),
    ("uk_chi", &["1803925191", "1203500920"], &["1803925192"]),
    ("uy_rut", &["219193870014", "212899630010", "214123450015"], &["219193870015", "212899630011"]),
    ("ve_rif", &["J851105319", "J128022693", "J273757561"], &["J851105310", "J128022694"]),
    ("vn_mst", &["0339260191", "0379356365", "0395917240"], &["0339260192", "0379356366"]),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [NUMBERS, PERSONS, OTHERS, TOKENS, KEYS, FURTHER].into_iter().flatten()
}

#[test]
fn every_validator_accepts_the_good_and_refuses_the_bad() {
    let mut wrong = Vec::new();
    for (name, good, bad) in cases() {
        let check = lookup(name).unwrap_or_else(|| panic!("no validator `{name}`"));
        let refuses = |value: &&&str| {
            matches!(check(value.as_bytes()), Verdict::Fail | Verdict::MadeUp(_) | Verdict::Doubt(_))
        };
        let refused = good.iter().filter(refuses);
        wrong.extend(refused.map(|value| format!("{name} refuses {value}")));
        let accepted = bad.iter().filter(|value| !refuses(value));
        wrong.extend(accepted.map(|value| format!("{name} accepts {value}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_validator_has_cases_and_a_name_of_its_own() {
    let tested: Vec<_> = cases().map(|(name, ..)| *name).collect();
    let mut names: Vec<_> = names().collect();
    let untested: Vec<_> = names.iter().filter(|name| !tested.contains(name)).collect();
    assert!(untested.is_empty(), "without cases: {untested:?}");
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is taken twice");
}

#[test]
fn token_checksums_are_proof_and_wrong_ones_are_doubt() {
    let check = lookup("crc32_base62").expect("registered");
    assert_eq!(
        check(b"npm_000000"),
        Verdict::Proof("token checksum valid"),
        "the checksum of nothing is zero"
    );
    assert_eq!(check(b"npm_000001"), Verdict::Doubt("token checksum wrong"));
}

#[test]
fn no_bytes_make_a_validator_panic() {
    // A small generator is enough: what breaks validators is odd lengths, separators and non-ASCII bytes.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let alphabet = b"0123456789ABCXYZabcxyz+-./() @:=_%$#\"'\\\n\0\x80\xff";
    let mut verdicts = 0;
    for len in 0..100 {
        for _ in 0..40 {
            let value: Vec<u8> =
                (0..len).map(|_| alphabet[(next() % alphabet.len() as u64) as usize]).collect();
            for name in names() {
                let check = lookup(name).expect("listed");
                check(&value);
                verdicts += 1;
            }
            // The forms the good values have, with one byte changed, reach deeper.
            for (name, good, _) in cases() {
                let mut near = good[0].as_bytes().to_vec();
                let at = (next() % near.len() as u64) as usize;
                near[at] = alphabet[(next() % alphabet.len() as u64) as usize];
                near.truncate(1 + (next() % near.len() as u64) as usize);
                lookup(name).expect("listed")(&near);
                verdicts += 1;
            }
        }
    }
    assert!(verdicts > 100_000);
}

#[test]
fn numbering_plans_are_in_order() {
    let key = |(code, _): &(&'static str, &str)| (code.len(), *code);
    assert!(super::phone_plans::PLANS.is_sorted_by(|a, b| key(a) < key(b)));
}
