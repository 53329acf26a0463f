const de = { password: 'Passwort', newPassword: 'Neues Passwort', token: 'Zugriffsschlüssel' };
const es = { password: 'Contraseña', passwordConfirm: 'Repetir contraseña' };
const nl = { password: "Wachtwoord", passwordWrong: "Wachtwoord onjuist" };
const ja = { password: "パスワード", zh: { password: "密码" }, ru: { password: "Пароль" } };
const errors = { password: 'Incorrect', passwordStrength: 'Strong', pass: 'Required' };
