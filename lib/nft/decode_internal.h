// Inside lib/nft only: what the kernel answers, into the model. Objects of other tables are left out.
#pragma once

#include "lib/nft/model.h"

struct nlmsghdr;

namespace keelson::nft {

void DecodeChain(const nlmsghdr* header, Ruleset& into);
void DecodeRule(const nlmsghdr* header, Ruleset& into);  // after its chain
void DecodeSet(const nlmsghdr* header, Ruleset& into);
void DecodeElements(const nlmsghdr* header, Ruleset::SetContents& into);

}  // namespace keelson::nft
