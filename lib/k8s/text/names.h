// Rules for names and values, under this library's namespace. lib/api has them, where CEL's formats see them too.
#pragma once

#include "lib/api/names.h"

namespace keelson::k8s {

using api::CheckCIdentifier;
using api::CheckConfigKey;
using api::CheckDns1035Label;
using api::CheckDns1123Label;
using api::CheckDns1123Subdomain;
using api::CheckDns1123SubdomainWithUnderscore;
using api::CheckEnvVarName;
using api::CheckHttpHeaderName;
using api::CheckIp;
using api::CheckLabelValue;
using api::CheckPathSegmentName;
using api::CheckPortName;
using api::CheckPortNumber;
using api::CheckQualifiedName;
using api::IsCidr;
using api::IsIpv4;
using api::IsIpv6;
using api::Problems;

}  // namespace keelson::k8s
