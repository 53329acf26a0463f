const password = process.env.PASSWORD;
const client = new Client({ user: 'shop', password: 'zM4-Fennel-86' });
const apiKey = 'c5Lx9Qk2Vz7Rw4Tb1Nm8Hs3Jd6Gf0Py';
const token = localStorage.getItem('token');
const passwordInput = document.querySelector('#password');
axios.defaults.headers.common['Authorization'] = `Bearer ${token}`;
export const PASSWORD_MIN = 12, TOKEN_KEY = 'auth_token', SECRET_FIELD = 'clientSecret';
<input type="password" name="password" placeholder="Password" autocomplete="current-password" />
const schema = { password: Joi.string().min(12).required(), token: yup.string() };
t('login.password'); t('errors.tokenExpired');
const strings = { password: 'Password', passwordConfirm: 'Confirm password', token: 'Access token' };
if (body.password !== body.passwordConfirm) throw new Error('Passwords differ');
