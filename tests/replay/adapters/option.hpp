// What stands behind KEY= in an adapter's options, KEY=VALUE,KEY=VALUE; empty where it does not stand there.
#pragma once

#include <string>

#include "blockyard/adapter.h"

inline std::string option(const by_adapter_setup& setup, const std::string& key) {
  const std::string all = std::string(",") + setup.options + ",";
  const std::size_t at = all.find("," + key + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return all.substr(begin, all.find(',', begin) - begin);
}
