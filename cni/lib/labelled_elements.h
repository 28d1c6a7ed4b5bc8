// Finds nftables elements by their label (label.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cni/lib/error.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {

struct LabelledElement {
  nft::Set set;
  nft::Element element;  // its comment is the label
};

// Deletes a table's elements whose label `unwanted` accepts, and returns them. Without the table: none.
Outcome<std::vector<LabelledElement>> RemoveElements(nft::Kernel& kernel, const nft::Table& table,
                                                     const std::function<bool(std::string_view)>& unwanted);

}  // namespace keelson::cni
