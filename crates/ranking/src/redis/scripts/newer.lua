-- Prefix of the scripts that write: the version rule, the only rule that Redis applies.

-- Whether version `a` is newer than `b`, 8 bytes each. Not `a > b`: Lua compares strings by the server's locale.
local function newer(a, b)
  local ah, al = struct.unpack('>I4I4', a)
  local bh, bl = struct.unpack('>I4I4', b)
  return ah > bh or (ah == bh and al > bl)
end
