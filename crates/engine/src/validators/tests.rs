//! Known-good and known-bad values of every validator: published test numbers, or made-up ones whose check
//! digits an independent implementation agrees with.

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
    ("us_aba", &["021000021", "122105155"], &["021000022", "459808060"]),
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
    ("ie_pps", &["5706921BW"], &["5706921CW", "5706921BX"]),
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
    ("card", &["4111 1111 1111 1111", "378282246310005", "2223000048400011"], &["4111 1111 1111 1112", "4"]),
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
        &["127.0.0.1", "192.0.2.1", "255.255.255.0", "300.1.2.3", "1.2.3"],
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
        &["+44 7700 921916", "+41 (0)44 628 35 17", "0049 30 901820"],
        &["+1 503 111 4416", "+0 123 456 789", "+4411111111111", "+12"],
    ),
    (
        "phone_us",
        &["503-782-4416", "1 (612) 734-8890", "612-734-8890x214"],
        &["503-111-4416", "213-555-0123", "123-456-7890"],
    ),
    ("phone_local", &["0471 28 63 95", "482 7716"], &["1111111", "12 34", "12345678"]),
    ("mixed", &["abc1"], &["abcd", "1234", ""]),
    (
        "literal",
        &["kD83jf02", "#br1ar9"],
        &["${PW}", "{{ pw }}", "get_pw()", "NULL", "#login-field", "0x018C", "<pw>"],
    ),
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
        &["my-application-secret-name", "abcdefghijkl", "${KEY12}"],
    ),
];

const TOKENS: &[Case] = &[
    (
        "crc32_base62",
        &["ghp_zQWBuTSOoRi4A9spHcVyR5n2BUZ8Sv0sWhdL", "npm_000000"],
        &["no-separator", "ghp_abc"],
    ),
    (
        "jwt",
        &["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"],
        &["eyJub3RoaW5nIjoxfQ.eyJzdWIiOiIxIn0.c2ln", "eye.eyeable", "eyJ"],
    ),
    (
        "pem",
        &[
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxU9l3K2v8Jf0aQnT",
            "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUA",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED",
        ],
        &["-----BEGIN RSA PRIVATE KEY-----\n...", "-----BEGIN PUBLIC KEY-----\nMIIB", "PRIVATE KEY", ""],
    ),
    (
        "base64_pem",
        &["LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF"],
        &["LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM", "!", ""],
    ),
    ("base64_user_password", &["ZGVwbG95OktkODNuZjAycQ=="], &["cmVhbG0=", "OnB3", "%%%"]),
    ("base64_32_bytes", &["yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="], &["yAnz5TF+lXXJ", ""]),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [NUMBERS, PERSONS, OTHERS, TOKENS].into_iter().flatten()
}

#[test]
fn every_validator_accepts_the_good_and_refuses_the_bad() {
    let mut wrong = Vec::new();
    for (name, good, bad) in cases() {
        let check = lookup(name).unwrap_or_else(|| panic!("no validator `{name}`"));
        let refused = good.iter().filter(|value| check(value.as_bytes()) == Verdict::Fail);
        wrong.extend(refused.map(|value| format!("{name} refuses {value}")));
        let accepted = bad.iter().filter(|value| check(value.as_bytes()) != Verdict::Fail);
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
fn token_checksums_are_proof_and_their_lack_is_none() {
    let check = lookup("crc32_base62").expect("registered");
    assert_eq!(
        check(b"npm_000000"),
        Verdict::Proof("token checksum valid"),
        "the checksum of nothing is zero"
    );
    assert_eq!(check(b"npm_000001"), Verdict::Pass);
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
