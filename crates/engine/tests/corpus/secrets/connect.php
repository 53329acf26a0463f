<?php
$db = mysqli_connect("db1", "shop", "wR4-Alder-62", "shop");
$db = mysqli_connect($host, $user, $password, $name);
$pdo = new PDO($dsn, $config['user'], $config['password']);
$secret = getenv('SHOP_SECRET') ?: 'tV2-Aspen-53';
$token = getenv('SHOP_TOKEN') ?: '';
