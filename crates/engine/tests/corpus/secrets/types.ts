interface Login { username: string; password: string; token?: string; apiKey: string | null }
export type Secret = { name: string; secretKey: Uint8Array };
const initial: Login = { username: '', password: '', apiKey: null };
type TokenProvider = (scope: string) => Promise<string>;
password: FormControl<string>;
const TOKEN = new InjectionToken<string>('API_TOKEN');
@Input() password = 'password';
