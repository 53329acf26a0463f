<?php
return [
    'mysql' => [
        'username' => 'shop',
        'password' => 'aJ6-Laurel-51',
        'charset' => 'utf8mb4',
    ],
    'redis' => ['password' => env('REDIS_PASSWORD', null)],
    'passwords' => ['users' => ['provider' => 'users', 'expire' => 60]],
];
$password = $_POST['password'];
$dsn = "pgsql:host=db1;dbname=shop;user=shop;password=cX9wkRm2";
$hash = password_hash($password, PASSWORD_BCRYPT);
