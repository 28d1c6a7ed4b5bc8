// Internal to lib/nft: decodes the kernel's answers into the model. Skips objects of other tables.
#pragma once

#include <string>

#include "lib/nft/model.h"

struct nftnl_rule;
struct nlmsghdr;

namespace keelson::nft {

std::string CommentOf(const nftnl_rule* rule);
void DecodeChain(const nlmsghdr* header, Ruleset& into);
void DecodeRule(const nlmsghdr* header, Ruleset& into);  // after its chain
void DecodeSet(const nlmsghdr* header, Ruleset& into);
void DecodeElements(const nlmsghdr* header, Ruleset::SetContents& into);

}  // namespace keelson::nft
